use super::*;
use axum::Router;
use axum::response::Redirect;
use axum::routing::{any, get};
use futures_util::FutureExt as _;
use http::{HeaderName, header};
use std::net::SocketAddr;
use std::str::FromStr as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A server on this machine that says what it was sent.
struct Site {
    addr: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Site {
    async fn new(router: Router) -> Self {
        let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = sockets.local_addr().unwrap();
        let told = |method: Method, headers: HeaderMap, body: Bytes| async move {
            let name = |name: &HeaderName| name.as_str().to_owned();
            let names: Vec<String> = headers.keys().map(name).collect();
            let body = String::from_utf8_lossy(&body).into_owned();
            format!("{method} [{}] {body}", names.join(" "))
        };
        let router = router.route("/told", any(told));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(sockets, router).await.unwrap() });
        Self {
            addr,
            _tasks: tasks,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A URL of the server by a host name.
    fn named(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.addr.port())
    }
}

fn outbound(allow: &[String]) -> Outbound {
    let allow = allow.iter().map(|text| Allowed::parse(text).unwrap());
    let allow = allow.collect();
    Outbound::new(OutboundConfig { allow, http: true }).unwrap()
}

async fn refused(outbound: &Outbound, url: &str) -> String {
    let answer = outbound.send(OutboundRequest::get(url)).await;
    answer.unwrap_err().to_string()
}

async fn told(outbound: &Outbound, request: OutboundRequest) -> String {
    let answer = outbound.send(request).await.unwrap();
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

fn with_secrets(url: &str) -> OutboundRequest {
    let mut request = OutboundRequest::get(url);
    for name in ["authorization", "cookie", "x-api-key", "accept"] {
        let name = HeaderName::from_str(name).unwrap();
        request.headers.insert(name, "text/plain".parse().unwrap());
    }
    request
}

#[tokio::test]
async fn this_machine_is_not_connected_to_by_address_or_by_name() {
    let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = sockets.local_addr().unwrap().port();
    let outbound = outbound(&[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[2002:7f00:1::]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST",
    ] {
        let said = refused(&outbound, &format!("http://{host}:{port}/")).await;
        assert!(said.contains("loopback"), "{host}: {said}");
    }
    let said = refused(&outbound, "http://169.254.169.254/latest").await;
    assert!(said.contains("cloud metadata"), "{said}");
    assert!(sockets.accept().now_or_never().is_none());
}

#[tokio::test]
async fn what_is_allowed_is_reached_and_nothing_beside_it() {
    let site = Site::new(Router::new()).await;
    let port = site.addr.port();
    for allow in [format!("127.0.0.1:{port}"), "127.0.0.0/8".to_owned()] {
        let request = OutboundRequest::post(site.url("/told"), "hello");
        let told = told(&outbound(&[allow]), request).await;
        assert!(
            told.starts_with("POST ") && told.ends_with(" hello"),
            "{told}"
        );
    }
    let by_name = outbound(&[format!("localhost:{port}")]);
    told(&by_name, OutboundRequest::get(site.named("/told"))).await;
    // The name is allowed, and neither its address nor its other ports.
    assert!(
        refused(&by_name, &site.url("/told"))
            .await
            .contains("loopback")
    );
    assert!(
        refused(&by_name, "http://localhost:1/")
            .await
            .contains("loopback")
    );
}

#[tokio::test]
async fn a_redirect_is_judged_like_the_address_before_it() {
    let inside = Site::new(Router::new()).await;
    let targets = [inside.url("/told"), inside.named("/told")];
    let mut router = Router::new();
    for (at, target) in targets.into_iter().enumerate() {
        let lead = get(move || async move { Redirect::temporary(&target) });
        router = router.route(&format!("/{at}"), lead);
    }
    let site = Site::new(router).await;
    let outbound = outbound(&[site.addr.to_string()]);
    for path in ["/0", "/1"] {
        let said = refused(&outbound, &site.url(path)).await;
        assert!(said.contains("loopback"), "{path}: {said}");
    }
    let other = with_redirect("ftp://example.org/").await;
    let by_network = super::tests::outbound(&["127.0.0.0/8".to_owned()]);
    assert!(
        refused(&by_network, &other.url("/"))
            .await
            .contains("https:")
    );
}

async fn with_redirect(target: &str) -> Site {
    let target = target.to_owned();
    let lead = any(move || async move { Redirect::temporary(&target) });
    Site::new(Router::new().route("/", lead)).await
}

#[tokio::test]
async fn credentials_go_to_no_other_host() {
    let outbound = outbound(&["127.0.0.0/8".to_owned()]);
    let same = with_redirect("/told").await;
    let here = told(&outbound, with_secrets(&same.url("/"))).await;
    assert!(
        here.contains("authorization") && here.contains("x-api-key"),
        "{here}"
    );
    let elsewhere = Site::new(Router::new()).await;
    let other = with_redirect(&elsewhere.url("/told")).await;
    let there = told(&outbound, with_secrets(&other.url("/"))).await;
    assert!(there.contains("accept"), "{there}");
    for secret in ["authorization", "cookie", "x-api-key", "referer"] {
        assert!(!there.contains(secret), "{there}");
    }
    let body = OutboundRequest::post(other.url("/"), "secret");
    let kept = outbound.send(body).await;
    assert!(matches!(kept, Err(OutboundError::WrongBody)), "{kept:?}");
    let in_url = same.url("/").replace("http://", "http://me:secret@");
    let said = refused(&outbound, &in_url).await;
    assert!(
        said.contains("password") && !said.contains("secret"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_seen_elsewhere_is_asked_for_without_the_body() {
    let lead = any(|| async { Redirect::to("/told") });
    let site = Site::new(Router::new().route("/", lead)).await;
    let outbound = outbound(&["127.0.0.0/8".to_owned()]);
    let mut request = OutboundRequest::post(site.url("/"), "hello");
    request
        .headers
        .insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
    let told = told(&outbound, request).await;
    assert!(told.starts_with("GET ") && told.ends_with("] "), "{told}");
    assert!(!told.contains("content-type"), "{told}");
}

#[tokio::test]
async fn redirects_bytes_and_time_have_their_limits() {
    let silent = any(std::future::pending::<()>);
    let router = Router::new()
        .route("/again", any(|| async { Redirect::temporary("/again") }))
        .route("/long", any(|| async { "x".repeat(1_001) }))
        .route(
            "/pieces",
            any(|| async {
                let piece = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 400]));
                axum::body::Body::from_stream(futures_util::stream::iter([
                    piece(),
                    piece(),
                    piece(),
                ]))
            }),
        )
        .route("/silent", silent);
    let site = Site::new(router).await;
    let outbound = outbound(&["127.0.0.0/8".to_owned()]);
    let send = |path: &str| {
        let request = OutboundRequest {
            max_bytes: 1_000,
            timeout: Duration::from_millis(if path == "/silent" { 20 } else { 20_000 }),
            ..OutboundRequest::get(site.url(path))
        };
        outbound.send(request)
    };
    assert!(matches!(
        send("/again").await,
        Err(OutboundError::TooManyRedirects { limit: 5 })
    ));
    for path in ["/long", "/pieces"] {
        let answer = send(path).await;
        assert!(
            matches!(answer, Err(OutboundError::TooLarge { limit: 1_000 })),
            "{path}"
        );
    }
    assert!(matches!(
        send("/silent").await,
        Err(OutboundError::Timeout { .. })
    ));
}

#[tokio::test]
async fn only_encrypted_addresses_are_asked_unless_others_are_allowed() {
    let outbound = Outbound::new(OutboundConfig::default()).unwrap();
    for (url, says) in [
        ("http://example.org/", "http: is not encrypted"),
        ("ftp://example.org/", "only https:"),
        ("file:///etc/passwd", "only https:"),
        ("example.org", "this is no address"),
        ("", "this is no address"),
        ("https://", "this is no address"),
        ("https://10.0.0.1/", "private"),
    ] {
        let said = refused(&outbound, url).await;
        assert!(said.contains(says), "{url}: {said}");
    }
}

#[tokio::test]
async fn as_many_redirects_are_followed_as_the_limit_says_and_no_more() {
    // `/hop/n` leads to `/told` by n redirects.
    let lead = |axum::extract::Path(left): axum::extract::Path<usize>| async move {
        match left - 1 {
            0 => Redirect::temporary("/told"),
            left => Redirect::temporary(&format!("/hop/{left}")),
        }
    };
    let site = Site::new(Router::new().route("/hop/{left}", get(lead))).await;
    let outbound = outbound(&["127.0.0.0/8".to_owned()]);
    for limit in [0, 1, 5] {
        let ask = |path: String| {
            let request = OutboundRequest {
                max_redirects: limit,
                ..OutboundRequest::get(site.url(&path))
            };
            outbound.send(request)
        };
        let within = match limit {
            0 => ask("/told".to_owned()).await,
            n => ask(format!("/hop/{n}")).await,
        };
        assert_eq!(within.unwrap().status, 200, "{limit} redirects");
        let beyond = ask(format!("/hop/{}", limit + 1)).await;
        assert!(
            matches!(beyond, Err(OutboundError::TooManyRedirects { limit: told }) if told == limit),
            "{} redirects: {beyond:?}",
            limit + 1
        );
    }
}
