//! Signals that ask the program to stop. Once it listens, none ends it by itself any more: whoever works looks here. Knows nothing of
//! what is being done.

use std::io;

use tokio::sync::watch;

/// What asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C.
    Int,
    /// SIGTERM, or the terminal went away.
    Term,
}

/// Every interrupt since [`Interrupts::listen`]. Cheap to clone; each clone sees them all.
#[derive(Clone)]
pub(crate) struct Interrupts {
    /// How many there were, and the last of them.
    told: watch::Receiver<(usize, Option<Interrupt>)>,
    heard: usize,
}

impl Interrupts {
    /// Within a tokio runtime only.
    pub(crate) fn listen() -> io::Result<Self> {
        let (tell, told) = watch::channel((0, None));
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            while let Some(interrupt) = signals.next().await {
                tell.send_modify(|(count, last)| {
                    *count += 1;
                    *last = Some(interrupt);
                });
            }
        });
        Ok(Self { told, heard: 0 })
    }

    /// Whether there was any.
    pub(crate) fn any(&self) -> bool {
        self.told.borrow().0 > 0
    }

    /// The next one that this clone has not given yet; never, when none comes.
    pub(crate) async fn next(&mut self) -> Interrupt {
        loop {
            let (count, last) = *self.told.borrow_and_update();
            if let Some(interrupt) = last.filter(|_| count > self.heard) {
                self.heard = count;
                return interrupt;
            }
            if self.told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(unix)]
struct Signals {
    int: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Option<Interrupt> {
        tokio::select! {
            some = self.int.recv() => some.map(|()| Interrupt::Int),
            some = self.term.recv() => some.map(|()| Interrupt::Term),
            some = self.hangup.recv() => some.map(|()| Interrupt::Term),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<Interrupt> {
        tokio::signal::ctrl_c().await.ok().map(|()| Interrupt::Int)
    }
}
