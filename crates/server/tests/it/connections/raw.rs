//! A client that writes and reads bytes of HTTP/1.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(20);

pub(super) struct Client<S = TcpStream> {
    stream: S,
    read: String,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(super) async fn connect(server: SocketAddr) -> Self {
        Self::new(TcpStream::connect(server).await.unwrap())
    }

    /// Connects from an address of this machine.
    pub(super) async fn connect_from(address: [u8; 4], server: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((address, 0))).unwrap();
        Self::new(socket.connect(server).await.unwrap())
    }
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Client<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            read: String::new(),
        }
    }

    pub(super) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Writes until the server takes no more, or has closed the connection.
    pub(super) async fn flood(&mut self, text: &str) {
        let write = async { while self.stream.write_all(text.as_bytes()).await.is_ok() {} };
        let _ = timeout(Duration::from_secs(1), write).await;
    }

    /// Reads until there is a text; everything that was read by then.
    pub(super) async fn read_until(&mut self, text: &str) -> String {
        while !self.read.contains(text) {
            assert!(self.more().await, "closed after {:?}", self.read);
        }
        std::mem::take(&mut self.read)
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let n = timeout(LONG, self.stream.read(&mut bytes)).await;
        let n = n.expect("something comes").unwrap_or(0);
        self.read
            .push_str(&String::from_utf8_lossy(bytes.get(..n).unwrap()));
        n > 0
    }

    pub(super) async fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await;
        self.answer().await
    }

    /// Reads an answer whose length is known.
    pub(super) async fn answer(&mut self) -> Answer {
        let read = self.read_until("\r\n\r\n").await;
        let (head, body) = read.split_once("\r\n\r\n").unwrap();
        let line = |name: &str| {
            let mut lines = head.lines();
            lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
        };
        let length: usize = line("content-length: ").unwrap().parse().unwrap();
        let status = line("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        body.clone_into(&mut self.read);
        while self.read.len() < length {
            assert!(self.more().await, "the body ends");
        }
        let body = std::mem::take(&mut self.read);
        let head = head.to_owned();
        Answer { status, head, body }
    }

    /// Waits until the server closes the connection; everything that came before.
    pub(super) async fn closed(&mut self) -> String {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// Whether the connection is open, once nothing more comes.
    pub(super) async fn is_open(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            let read = self.stream.read(&mut bytes);
            match timeout(Duration::from_millis(100), read).await {
                Err(_) => return true,
                Ok(Ok(1..)) => {}
                Ok(_) => return false,
            }
        }
    }
}
