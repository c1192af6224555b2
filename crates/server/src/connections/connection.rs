//! One connection: its state, and how long it may stay in it.

use super::Shared;
use super::client::ClientAddress;
use super::group::Group;
use http::Version;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time limits of a connection's states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For the head of a request, and for the wait for the first one.
    pub(super) header: Duration,
    /// Between requests.
    pub(super) idle: Duration,
    /// Maximum time while the client accepts no bytes.
    pub(super) stalled: Duration,
}

impl Timeouts {
    fn shortest(&self) -> Duration {
        self.header.min(self.idle).min(self.stalled)
    }
}

/// One connection.
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// The counters of its lane and, unless it is a proxy, of its address.
    lane: Arc<Group>,
    address: Option<(IpAddr, Arc<Group>)>,
    timeouts: Timeouts,
    state: Mutex<State>,
    /// Cancelled when the server stops, or when the connection is closed to make room.
    signal: CancellationToken,
    is_overflow: bool,
}

struct State {
    in_progress: usize,
    /// The state if no request is in progress.
    phase: Phase,
    /// When that state began.
    since: Instant,
    /// Since when the client accepts no bytes.
    blocked_since: Option<Instant>,
    /// The number of the turn in which it became idle.
    turn: Option<u64>,
    is_http2: bool,
    is_closed: bool,
    has_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has sent no request yet.
    New,
    /// Part of a request's head has arrived.
    Head,
    /// The last request was answered.
    Idle,
}

/// The action of a connection when its timer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Wait on.
    Later(Instant),
    /// Close after sending the remaining bytes: the connection was idle too long.
    Idle,
    /// Close at once: a head took too long, or the client accepts no bytes.
    Overdue,
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        lane: Arc<Group>,
        address: Option<(IpAddr, Arc<Group>)>,
        timeouts: Timeouts,
        signal: CancellationToken,
        is_overflow: bool,
    ) -> Arc<Self> {
        lane.join();
        if let Some((address, group)) = &address {
            shared.addresses.join(*address, group);
        }
        shared.figures.open.inc();
        let turn = shared.next_turn();
        let connection = Arc::new(Self {
            lane,
            address,
            timeouts,
            state: Mutex::new(State {
                in_progress: 0,
                phase: Phase::New,
                since: Instant::now(),
                blocked_since: None,
                turn: Some(turn),
                is_http2: false,
                is_closed: false,
                has_left: false,
            }),
            shared,
            signal,
            is_overflow,
        });
        connection.queue(turn);
        connection
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        let address = self.address.iter().map(|(_, group)| group);
        std::iter::once(&self.lane).chain(address).map(|it| &**it)
    }

    // Without the lock of the state: groups take it while they have their own.
    fn queue(self: &Arc<Self>, turn: u64) {
        for group in self.groups() {
            group.note_idle(self, turn);
        }
    }

    pub(super) fn signal(&self) -> &CancellationToken {
        &self.signal
    }

    /// The client's address, or its network; none for a trusted proxy.
    pub(super) fn client(&self) -> Option<ClientAddress> {
        let address = self.address.as_ref();
        address.map(|(address, _)| ClientAddress(*address))
    }

    /// Whether it is beyond the cap.
    pub(super) fn is_overflow(&self) -> bool {
        self.is_overflow
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Whether it has been idle since that turn.
    pub(super) fn is_idle(&self, turn: u64) -> bool {
        self.state().turn == Some(turn)
    }

    /// Closes it if it has been idle since that turn.
    pub(super) fn close_for_room(&self, turn: u64) -> bool {
        {
            let mut state = self.state();
            if state.turn != Some(turn) || state.is_closed {
                return false;
            }
            state.is_closed = true;
            state.turn = None;
        }
        self.shared.figures.closed_for_room.inc();
        // Its socket is closed in a moment; another one may come at once.
        self.release();
        self.signal.cancel();
        true
    }

    /// Releases the connection: its socket is closed or about to be.
    pub(super) fn release(&self) {
        {
            let mut state = self.state();
            if std::mem::replace(&mut state.has_left, true) {
                return;
            }
            state.turn = None;
        }
        self.lane.release();
        if let Some((address, group)) = &self.address {
            self.shared.addresses.release(*address, group);
        }
        self.shared.figures.open.dec();
    }

    /// Starts a request. `None` if the connection is being closed; then the request must not be
    /// processed.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> Option<InProgress> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        state.in_progress += 1;
        state.turn = None;
        state.is_http2 = version == Version::HTTP_2;
        drop(state);
        Some(InProgress(Some(Arc::clone(self))))
    }

    /// Marks the connection as busy while an HTTP/2 stream is open.
    pub(super) fn hold(self: &Arc<Self>) -> InProgress {
        let mut state = self.state();
        state.in_progress += 1;
        state.turn = None;
        drop(state);
        InProgress(Some(Arc::clone(self)))
    }

    fn end(self: &Arc<Self>) {
        let mut state = self.state();
        state.in_progress = state.in_progress.saturating_sub(1);
        if state.in_progress > 0 || state.is_closed || state.has_left {
            return;
        }
        let turn = self.shared.next_turn();
        state.phase = Phase::Idle;
        state.since = Instant::now();
        state.turn = Some(turn);
        drop(state);
        self.queue(turn);
    }

    /// Notes the end of the TLS handshake; the time limit of the first request starts.
    pub(super) fn note_handshake(&self) {
        self.state().since = Instant::now();
    }

    /// Notes received bytes. Between HTTP/1 requests they begin a head; with HTTP/2 they may be other
    /// frames.
    pub(super) fn note_read(&self) {
        let mut state = self.state();
        if state.in_progress == 0 && state.phase == Phase::Idle && !state.is_http2 {
            state.phase = Phase::Head;
            state.since = Instant::now();
        }
    }

    /// The client accepts nothing now.
    pub(super) fn note_blocked(&self) {
        let mut state = self.state();
        if state.blocked_since.is_none() {
            state.blocked_since = Some(Instant::now());
        }
    }

    /// The client has accepted something.
    pub(super) fn note_written(&self) {
        let mut state = self.state();
        if state.blocked_since.take().is_some() && state.phase == Phase::Idle {
            state.since = Instant::now();
        }
    }

    /// The action that is due, or when to check next. A state that begins later does not time out before
    /// the returned time.
    pub(super) fn due(&self, now: Instant) -> Due {
        let state = self.state();
        let blocked = state.blocked_since.map(|at| at + self.timeouts.stalled);
        let phase = (state.in_progress == 0).then(|| match state.phase {
            Phase::New | Phase::Head => (state.since + self.timeouts.header, Due::Overdue),
            Phase::Idle => (state.since + self.timeouts.idle, Due::Idle),
        });
        let phase = phase.filter(|_| blocked.is_none());
        let ends = phase.or(blocked.map(|at| (at, Due::Overdue)));
        let check = now + self.timeouts.shortest();
        match ends {
            Some((at, due)) if at <= now => due,
            Some((at, _)) => Due::Later(at.min(check)),
            None => Due::Later(check),
        }
    }

    pub(super) fn timed_out(&self) {
        self.shared.figures.timed_out.inc();
    }
}

/// A request, or an HTTP/2 stream. A connection with one is not idle.
pub(super) struct InProgress(Option<Arc<Connection>>);

impl InProgress {
    /// Marks the connection as upgraded to another protocol: it never becomes idle again.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.end();
        }
    }
}
