//! A writer that outlives its reader: `drift -A | head -1` ends with the verdict's exit code. Knows nothing of what is written.

use std::io::{self, ErrorKind, Write};

/// Once the reader has gone, everything is written to nowhere, and that is success. Other errors stay errors.
///
/// The kernel's SIGPIPE would end the process before it could tell the verdict; Rust's start-up code ignores it.
pub(crate) struct Pipe<W> {
    to: W,
    is_broken: bool,
}

impl<W: Write> Pipe<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, is_broken: false }
    }

    fn outlive<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_broken = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_broken {
            return Ok(bytes.len());
        }
        let result = self.to.write(bytes);
        self.outlive(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_broken {
            return Ok(());
        }
        let result = self.to.flush();
        self.outlive(result, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let mut pipe = Pipe::new(Failing(ErrorKind::BrokenPipe));
        assert!(pipe.flush().is_ok());
        assert!(pipe.write_all(b"rest").is_ok());
        let mut buffered = io::BufWriter::new(Pipe::new(Failing(ErrorKind::BrokenPipe)));
        assert!(buffered.write_all(b"rest").and_then(|()| buffered.flush()).is_ok());
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut pipe = Pipe::new(Failing(ErrorKind::StorageFull));
        assert_eq!(pipe.write_all(b"rest").map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
    }
}
