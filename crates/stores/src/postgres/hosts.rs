//! The hosts of a database, and the order in which they are tried.

use super::error::Unavailable;
use super::options::OptionsFault;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::StoreError;
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A client, and its connection.
type Connected = (
    Client,
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
);

/// The hosts of a URL. The library limits only the time of a TCP connection. Here the time of the whole connect is
/// limited, because the kernel of a server that hangs accepts connections.
#[derive(Clone)]
pub(super) struct Hosts {
    /// The settings, without a host.
    settings: Config,
    list: Vec<(Option<Host>, Option<IpAddr>, u16)>,
    /// How long a connect to one address may take.
    limit: Duration,
    /// The position of the host to try first. Clones share it.
    first: Arc<AtomicUsize>,
}

impl Hosts {
    /// The hosts of a configuration.
    pub(super) fn new(config: &Config, limit: Duration) -> Result<Self, OptionsFault> {
        let (names, addresses, ports) = (
            config.get_hosts(),
            config.get_hostaddrs(),
            config.get_ports(),
        );
        let n_hosts = names.len().max(addresses.len());
        let fits = |n: usize| n == 0 || n == n_hosts;
        if n_hosts == 0
            || !fits(names.len())
            || !fits(addresses.len())
            || !(ports.len() == 1 || fits(ports.len()))
        {
            return Err(OptionsFault::Hosts);
        }
        let hosts = (0..n_hosts).map(|n| {
            let port = ports.get(n).or_else(|| ports.first());
            let (name, address) = (names.get(n).cloned(), addresses.get(n).copied());
            (name, address, port.copied().unwrap_or(5432))
        });
        Ok(Self {
            settings: settings(config),
            list: hosts.collect(),
            limit,
            first: Arc::default(),
        })
    }

    /// These hosts with a limit, so that all of them are tried within this time if each has one address.
    pub(super) fn within(&self, time: Duration) -> Self {
        let n_hosts = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let limit = time.checked_div(n_hosts).unwrap_or(time);
        Self {
            limit: limit.min(self.limit),
            ..self.clone()
        }
    }

    /// How long a connect to one address may take.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Connects to a host. Begins with the last one that answered.
    pub(super) async fn connect(&self, tls: &MakeRustlsConnect) -> Result<Connected, StoreError> {
        let first = self.first.load(Ordering::Relaxed);
        let order = (0..self.list.len()).cycle().skip(first);
        let mut order: Vec<_> = order.take(self.list.len()).collect();
        if self.settings.get_load_balance_hosts() == LoadBalanceHosts::Random {
            fastrand::shuffle(&mut order);
        }
        let mut failed = Unavailable::Silent.into();
        for n in order {
            // If the caller is dropped meanwhile, the next call begins with the next host.
            self.first.store(n + 1, Ordering::Relaxed);
            match self.connect_to(n, tls).await {
                Ok(connected) => {
                    self.first.store(n, Ordering::Relaxed);
                    return Ok(connected);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Connects to the host at this position.
    async fn connect_to(&self, n: usize, tls: &MakeRustlsConnect) -> Result<Connected, StoreError> {
        let mut failed = Unavailable::Silent.into();
        for config in self.addresses(n).await? {
            match timeout(self.limit, config.connect(tls.clone())).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => failed = unreachable(&error),
                Err(_) => failed = Unavailable::Silent.into(),
            }
        }
        Err(failed)
    }

    /// A configuration for each address of a host.
    async fn addresses(&self, n: usize) -> Result<Vec<Config>, StoreError> {
        let Some((host, address, port)) = self.list.get(n) else {
            return Ok(Vec::new());
        };
        let mut config = self.settings.clone();
        config.port(*port);
        let name = match host {
            Some(Host::Tcp(name)) => {
                config.host(name);
                Some(name)
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                config.host_path(path);
                None
            }
            None => None,
        };
        let addresses = match (address, name) {
            (Some(address), _) => vec![*address],
            (None, None) => return Ok(vec![config]),
            (None, Some(name)) => {
                let found = timeout(self.limit, lookup_host((name.as_str(), *port))).await;
                let found = found.map_err(|_| StoreError::from(Unavailable::Silent))?;
                let found =
                    found.map_err(|error| Unavailable::Unreachable(format!("{name}: {error}")))?;
                found.map(|address| address.ip()).collect()
            }
        };
        let with = |address| {
            let mut config = config.clone();
            config.hostaddr(address);
            config
        };
        Ok(addresses.into_iter().map(with).collect())
    }
}

/// The settings of a configuration, without its hosts.
fn settings(config: &Config) -> Config {
    let mut settings = Config::new();
    if let Some(user) = config.get_user() {
        settings.user(user);
    }
    if let Some(password) = config.get_password() {
        settings.password(password);
    }
    if let Some(name) = config.get_dbname() {
        settings.dbname(name);
    }
    if let Some(options) = config.get_options() {
        settings.options(options);
    }
    if let Some(name) = config.get_application_name() {
        settings.application_name(name);
    }
    if let Some(time) = config.get_connect_timeout() {
        settings.connect_timeout(*time);
    }
    if let Some(time) = config.get_tcp_user_timeout() {
        settings.tcp_user_timeout(*time);
    }
    if let Some(time) = config.get_keepalives_interval() {
        settings.keepalives_interval(time);
    }
    if let Some(n) = config.get_keepalives_retries() {
        settings.keepalives_retries(n);
    }
    settings
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    settings
}

fn unreachable(error: &Error) -> StoreError {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let why = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    Unavailable::Unreachable(why).into()
}
