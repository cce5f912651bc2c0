//! Puts an object back as it was: first as somebody would, then with the traces of that gone. Knows nothing of `drift`.

use super::charts::Thing;
use super::control_plane::ControlPlane;
use super::oracle::{Author, Traces};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A controller may write in between, or a webhook of another chart be slow.
const LIMIT: Duration = Duration::from_secs(60);

/// The object as it is; `None` when it is not there.
pub(crate) fn read(plane: &ControlPlane, thing: &Thing) -> Result<Option<Value>, String> {
    match plane.request("GET", &thing.url, &Value::Null) {
        Ok(mut object) => {
            // Single objects carry them already; this is for servers that do not.
            object["apiVersion"] = json!(thing.api_version);
            object["kind"] = json!(thing.kind);
            Ok(Some(object))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(format!("{}: {error}", thing.url)),
    }
}

/// Writes the saved content as `manager`, or creates the object again where it is gone.
pub(crate) fn undo(plane: &ControlPlane, thing: &Thing, saved: &Value, manager: &str) -> Result<(), String> {
    insist(|| {
        let mut body = saved.clone();
        let metadata = body["metadata"].as_object_mut().ok_or("no metadata")?;
        metadata.remove("managedFields");
        match read(plane, thing)? {
            Some(live) if live["metadata"]["deletionTimestamp"].is_null() => {
                for key in ["resourceVersion", "uid"] {
                    metadata.insert(key.to_owned(), live["metadata"][key].clone());
                }
                // Created anew since then, or of a type that has none, it gets others; an update that states none keeps what is there.
                if live["metadata"]["uid"] != saved["metadata"]["uid"] || live["spec"]["type"] != saved["spec"]["type"]
                {
                    leave_allocated(thing, &mut body);
                }
                let url = format!("{}?fieldManager={manager}", thing.url);
                plane.request("PUT", &url, &body).map(drop).map_err(|error| format!("PUT {url}: {error}"))
            }
            Some(_) => Err(format!("{} is being deleted", thing.url)),
            None => {
                for key in ["resourceVersion", "uid", "creationTimestamp", "generation"] {
                    metadata.remove(key);
                }
                leave_allocated(thing, &mut body);
                let url = format!("{}?fieldManager={manager}", thing.collection);
                plane.request("POST", &url, &body).map(drop).map_err(|error| format!("POST {url}: {error}"))
            }
        }
    })
}

/// Takes out what the server allocates to a Service, unless the manifest states it: who sends an old node port along asks for it.
fn leave_allocated(thing: &Thing, body: &mut Value) {
    let Some(spec) = body["spec"].as_object_mut().filter(|_| thing.kind == "Service") else { return };
    let desired = &thing.desired;
    for key in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        // A Service without an address is one by choice.
        let is_headless =
            key.starts_with("clusterIP") && spec.get("clusterIP").is_some_and(|address| address == "None");
        if desired["spec"][key].is_null() && !is_headless {
            spec.remove(key);
        }
    }
    let wanted: Vec<&Value> = desired["spec"]["ports"].as_array().into_iter().flatten().collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let is_stated =
            wanted.iter().any(|other| other["nodePort"].is_number() && other["nodePort"] == port["nodePort"]);
        if let Some(port) = port.as_object_mut().filter(|_| !is_stated) {
            port.remove("nodePort");
        }
    }
}

/// Gives the object the saved owners again. An update may state managedFields; they are taken as they are where nothing else differs.
pub(crate) fn forget(plane: &ControlPlane, thing: &Thing, saved: &Value) -> Result<(), String> {
    let url = format!("{}?fieldManager=rewind", thing.url);
    let put = |owners: &Value| {
        let mut body = read(plane, thing)?.ok_or_else(|| format!("{} is gone", thing.url))?;
        body["metadata"]["managedFields"] = owners.clone();
        plane.request("PUT", &url, &body).map_err(|error| format!("PUT {url}: {error}"))
    };
    let managers = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries.map(|entry| format!("{} {}", entry["manager"], entry["time"])).collect()
    };
    let saved_owners = &saved["metadata"]["managedFields"];
    insist(|| {
        if managers(&put(saved_owners)?) == managers(saved) {
            return Ok(());
        }
        // Where nothing but times differs, the server keeps the old ones; cleared first, they are new.
        put(&json!([{}]))?;
        let answer = put(saved_owners)?;
        if managers(&answer) == managers(saved) {
            return Ok(());
        }
        Err(format!("{}: owners are {:?}, not {:?}", thing.url, managers(&answer), managers(saved)))
    })
}

/// Takes the author's entry, or all, out of managedFields, as anyone with write rights can.
pub(crate) fn cover(plane: &ControlPlane, thing: &Thing, author: &Author) -> Result<(), String> {
    insist(|| {
        let mut body = read(plane, thing)?.ok_or_else(|| format!("{} is gone", thing.url))?;
        let owners = body["metadata"]["managedFields"].as_array_mut().ok_or("no managedFields")?;
        match author.traces {
            Traces::Kept => return Ok(()),
            Traces::Trimmed => owners.retain(|entry| entry["manager"] != author.name),
            Traces::Wiped => *owners = vec![json!({})],
        }
        let url = format!("{}?fieldManager=cover", thing.url);
        let answer = plane.request("PUT", &url, &body).map_err(|error| format!("PUT {url}: {error}"))?;
        let left = answer["metadata"]["managedFields"].as_array().map_or(0, Vec::len);
        let is_covered = match author.traces {
            Traces::Wiped => left == 0,
            Traces::Kept | Traces::Trimmed => {
                left > 0 && !answer["metadata"]["managedFields"].to_string().contains(author.name)
            }
        };
        if is_covered { Ok(()) } else { Err(format!("{}: {left} owners are left", thing.url)) }
    })
}

/// Waits until the object is gone.
pub(crate) fn gone(plane: &ControlPlane, thing: &Thing) -> Result<(), String> {
    insist(|| match read(plane, thing)? {
        None => Ok(()),
        Some(_) => Err(format!("{} is still there", thing.url)),
    })
}

fn insist(mut attempt: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(problem) if Instant::now() > deadline => return Err(problem),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
