//! A spinner on stderr for work that takes over a second. Knows nothing of the work.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::escape::escape;

/// Quick work shows nothing: a spinner that flashes up is noise.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(120);

/// Dropping it takes the spinner away, so that an error never lands beside one.
pub(crate) struct Progress {
    running: Option<Running>,
}

struct Running {
    bar: ProgressBar,
    finished: Arc<Finished>,
}

/// Whether the work is done; held while the spinner is shown or taken away, so that neither can overtake the other.
#[derive(Default)]
struct Finished {
    state: Mutex<bool>,
    changed: Condvar,
}

impl Progress {
    /// `enabled`: stderr is a terminal, and neither `-q` nor `--no-progress` was given.
    pub(crate) fn new(enabled: bool) -> Self {
        Self::starting(enabled, PATIENCE, ProgressDrawTarget::stderr)
    }

    fn starting(
        enabled: bool,
        patience: Duration,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
    ) -> Self {
        if !enabled {
            return Self { running: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        let finished = Arc::new(Finished::default());
        let (late, done) = (bar.clone(), Arc::clone(&finished));
        thread::spawn(move || {
            let state = done.state.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = done.changed.wait_timeout_while(state, patience, |finished| !*finished);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if !*state {
                late.set_draw_target(target());
                late.enable_steady_tick(TICK);
            }
        });
        Self { running: Some(Running { bar, finished }) }
    }

    /// What is being done now: `reading 12 releases`.
    pub(crate) fn stage(&self, text: &str) {
        if let Some(running) = &self.running {
            running.bar.set_message(escape(text).into_owned());
        }
    }

    /// Takes the spinner away; to be called before anything is printed.
    pub(crate) fn finish(&self) {
        if let Some(Running { bar, finished }) = &self.running {
            let mut state = finished.state.lock().unwrap_or_else(PoisonError::into_inner);
            *state = true;
            finished.changed.notify_all();
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    use indicatif::TermLike;

    /// Notes what is written to it; a cleared line is an empty screen.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            60
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the screen shows while the work is done, and after it.
    fn shown(patience: Duration, work: Duration) -> (String, String) {
        let screen = Screen::default();
        let target = screen.clone();
        let progress = Progress::starting(true, patience, move || ProgressDrawTarget::term_like(Box::new(target)));
        progress.stage("reading 12 \u{1b}[31mreleases");
        thread::sleep(work);
        let during = screen.0.lock().unwrap().clone();
        progress.finish();
        thread::sleep(TICK);
        let after = screen.0.lock().unwrap().clone();
        (during, after)
    }

    #[test]
    fn quick_work_shows_nothing() {
        assert_eq!(shown(Duration::from_secs(60), Duration::from_millis(20)), (String::new(), String::new()));
    }

    #[test]
    fn long_work_shows_its_stage_and_leaves_no_trace() {
        let (during, after) = shown(Duration::ZERO, TICK * 4);
        assert!(during.contains(r"reading 12 \x1b[31mreleases"), "{during:?}");
        assert_eq!(after.trim(), "");
    }

    #[test]
    fn progress_that_is_not_wanted_runs_nothing() {
        let progress = Progress::new(false);
        progress.stage("reading");
        progress.finish();
        assert!(progress.running.is_none());
    }
}
