//! For tests: a small HTTP server that answers as it is told, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::client::Client;
use crate::config::Target;

/// Path with query, and the `Accept` header.
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) accept: String,
}

/// Status and body; status 0 closes the connection without an answer.
pub(super) type Answer = (u16, String);

pub(super) struct Fake {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(super) fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Self { url, asked }
    }

    pub(super) async fn client(&self) -> Client {
        let target = Target {
            server: Some(self.url.clone()),
            request_timeout: std::time::Duration::from_secs(5),
            parallel: 8,
            ..Target::default()
        };
        Client::connect(&target).await.unwrap()
    }

    /// Paths asked for so far, sorted, since the order of parallel reads is nobody's.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.sort();
        asked
    }
}

fn serve(mut stream: TcpStream, answer: &(dyn Fn(&Asked) -> Answer + Send + Sync), log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut accept = String::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("accept")
            {
                accept = value.trim().to_owned();
            }
        }
        log.lock().unwrap().push(path.clone());
        let (status, body) = answer(&Asked { path, accept });
        if status == 0 {
            return;
        }
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

/// The `Status` object of a failure.
pub(super) fn status(code: u16, message: &str) -> Answer {
    (code, serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}).to_string())
}
