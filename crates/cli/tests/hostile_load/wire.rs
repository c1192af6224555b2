//! Bare sockets: requests as bytes, and sockets that are opened and then left alone.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use tokio::net::TcpSocket;

/// How long an answer may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was answered; the status is 0 where nothing was.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, key: &str, more: &str, body: &str) -> String {
    let content = if body.is_empty() {
        String::new()
    } else {
        format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        )
    };
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n{more}{content}\r\n{body}"
    )
}

/// Sends a request on a connection of its own, and reads the whole answer.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    body: Option<&str>,
) -> Answer {
    let text = request(
        method,
        path,
        key,
        "accept: application/json\r\nconnection: close\r\n",
        body.unwrap_or_default(),
    );
    let answer = exchange(address, &text).unwrap_or_default();
    read_answer(&answer)
}

fn exchange(address: SocketAddr, text: &str) -> std::io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.write_all(text.as_bytes())?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    Ok(answer)
}

fn read_answer(answer: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    Answer {
        status: status.unwrap_or_default(),
        body: body.to_owned(),
    }
}

/// Opens a connection from the attacker's n-th address; none where the server or the system refuses it.
pub(crate) fn connect(address: SocketAddr, n: usize) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = TcpSocket::new_v4().ok()?;
        // A small window: what the client does not read stays with the server.
        socket.set_recv_buffer_size(4096).ok()?;
        let source = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(n % 8).unwrap_or_default());
        socket.bind((source, 0).into()).ok()?;
        let socket = socket.connect(address).await.ok()?.into_std().ok()?;
        socket.set_nonblocking(false).ok()?;
        socket
            .set_write_timeout(Some(Duration::from_secs(5)))
            .ok()?;
        socket.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(socket)
    })
}

/// Opens connections, and sends this on each.
pub(crate) fn send_each(
    address: SocketAddr,
    n: usize,
    text: impl Fn(usize) -> String,
) -> Vec<TcpStream> {
    let open = (0..n).filter_map(|n| {
        let mut socket = connect(address, n)?;
        // The server may refuse and close before all is sent.
        let _ = socket.write_all(text(n).as_bytes());
        Some(socket)
    });
    open.collect()
}

/// How many of these answers begin with each status, read from what has arrived.
pub(crate) fn statuses(sockets: &mut [TcpStream]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for socket in sockets {
        let mut line = [0; 12];
        let status = match socket.read_exact(&mut line) {
            Ok(()) => String::from_utf8_lossy(&line[9..]).into_owned(),
            Err(_) => "closed".to_owned(),
        };
        *counts.entry(status).or_insert(0) += 1;
    }
    let counts = counts.iter().map(|(status, n)| format!("{status}: {n}"));
    counts.collect::<Vec<_>>().join(", ")
}
