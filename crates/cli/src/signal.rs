//! Signals that end the program.

/// A signal that ends a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// `SIGINT`, or Ctrl-C.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
}

impl Signal {
    /// The exit code that shells give to a program that a signal ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Waits for a signal that ends the program.
pub(crate) async fn stopped() -> Signal {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let Ok(mut terminate) =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        else {
            let _ = interrupt.await;
            return Signal::Interrupt;
        };
        tokio::select! {
            _ = interrupt => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
        Signal::Interrupt
    }
}
