use super::diff::Turns;
use super::*;
use crate::assets::Assets;
use crate::shell::{Area, Menu, Shell};
use ::timeline::ThreadStatus;
use std::sync::LazyLock;
use thread::diff::diff;
use thread::{Profile, Thread, Version, validate};

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::default);
const EVIL: &str = "\"><img src=x onerror=a>\u{202e}";

fn frame(section: ConsoleSection<'_>) -> ConsoleFrame<'_> {
    ConsoleFrame {
        shell: Shell {
            assets: &ASSETS,
            name: "Loomline",
            title: "Console",
            threads: &[],
            current: None,
            area: Area::Console,
            menu: Menu::default(),
            is_read_only: false,
        },
        section,
        api_path: None,
    }
}

fn of_thread(section: ThreadSection) -> ConsoleFrame<'static> {
    frame(ConsoleSection::Thread {
        key: "t",
        title: None,
        section,
    })
}

/// The main part of a page, which has no markup of others.
fn main_of(page: &maud::Markup) -> String {
    let html = page.0.as_str();
    let (_, main) = html.split_once("<main").unwrap();
    let (main, _) = main.split_once("</main>").unwrap();
    assert!(
        !main.contains("<img") && !main.contains('\u{202e}'),
        "{main}"
    );
    main.to_owned()
}

fn related(key: &str, parent: Option<&str>) -> RelatedThread {
    RelatedThread {
        key: key.to_owned(),
        title: None,
        parent: parent.map(str::to_owned),
        forked_at: parent.map(|_| 7),
        tool_call_id: None,
        is_current: key == "t",
        status: ThreadStatus::Open,
        changed_at: "2026-01-05T08:00:00Z".parse().unwrap(),
        n_events: 9,
    }
}

fn branches(threads: &[RelatedThread]) -> String {
    let page = BranchesPage {
        frame: of_thread(ThreadSection::Branches),
        key: "t",
        threads,
        more: false,
    };
    main_of(&page.html())
}

#[test]
fn a_tree_has_each_thread_below_its_parent() {
    let mut sub = related("t/call", Some("t"));
    (sub.forked_at, sub.tool_call_id) = (None, Some(EVIL.to_owned()));
    sub.title = Some(EVIL.to_owned());
    let html = branches(&[related("t", None), related("f", Some("t")), sub]);
    assert_eq!(html.matches("<ul class=\"tree\">").count(), 2);
    for part in [
        "href=\"/chat/t?at=7\"",
        "sub-agent of <bdi>t</bdi>",
        "this thread",
        "href=\"/console/t/t%2Fcall\"",
        "href=\"/console/t/t/diff?with=f\"",
        "<option value=\"t\" selected>",
        "<option value=\"f\" selected>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn a_deep_tree_has_a_limit_of_levels() {
    let mut threads = vec![related("t", None)];
    for n in 0..40 {
        let parent = threads.last().unwrap().key.clone();
        threads.push(related(&format!("f{n}"), Some(&parent)));
    }
    let html = branches(&threads);
    assert_eq!(html.matches("<ul class=\"tree\">").count(), 10);
    assert_eq!(html.matches("class=\"branch\"").count(), 41);
}

#[test]
fn a_thread_without_relatives_names_the_next_action() {
    let html = branches(&[related("t", None)]);
    assert!(html.contains("no forks") && html.contains("href=\"/chat/t\""));
    assert!(!html.contains("<form"));
}

/// A document with a turn of a user for each text.
fn document(texts: &[&str]) -> Thread {
    let turns = texts.iter().map(|text| {
        let part = serde_json::json!({"part_kind": "user-prompt", "content": text});
        serde_json::json!({"turn_type": "user", "parts": [part]})
    });
    let turns: Vec<serde_json::Value> = turns.collect();
    let text = serde_json::json!({"version": "0.0.4", "turns": turns}).to_string();
    Thread::decode(&text).unwrap()
}

fn differences(from: &[&str], to: &[&str]) -> String {
    let diff = diff(&document(from), &document(to));
    let page = DiffPage {
        frame: of_thread(ThreadSection::Branches),
        key: "t",
        other: Some(("f", &diff)),
    };
    main_of(&page.html())
}

#[test]
fn two_branches_are_the_same_up_to_a_turn() {
    let html = differences(&["one", "window seat"], &["one", "aisle seat", EVIL]);
    for part in [
        "The same up to turn 1.",
        "<del>window</del> seat",
        "<ins>aisle</ins> seat",
        "Turn 2",
        "Turn 3",
        "only in the second",
        "sha256:",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(differences(&["one"], &["one"]).contains("All turns are the same."));
    assert!(differences(&["one"], &["two"]).contains("The first turn is different."));
}

#[test]
fn turns_at_the_same_position_are_a_pair() {
    let from = document(&["a", "b", "c", "d", "e"]);
    let to = document(&["a", "x", "y", "c", "d", "e", "z"]);
    let found = diff(&from, &to);
    let turns = Turns::of(&found);
    let pairs: Vec<(bool, bool)> = turns
        .pairs
        .iter()
        .map(|pair| (pair.from.is_some(), pair.to.is_some()))
        .collect();
    assert_eq!(turns.same, Some(1));
    assert_eq!(pairs, [(true, true), (false, true), (false, true)]);
}

#[test]
fn a_comparison_without_another_thread_is_a_form() {
    let page = DiffPage {
        frame: of_thread(ThreadSection::Branches),
        key: "t",
        other: None,
    };
    let html = main_of(&page.html());
    assert!(html.contains("name=\"with\"") && html.contains("Compare with which thread?"));
}

#[test]
fn a_document_has_a_verdict_a_hash_and_losses() {
    let document = document(&[EVIL]);
    let violations = validate(&document, Profile::Strict);
    assert!(!violations.is_empty());
    let view = DocumentView {
        version: Version::V0_0_3,
        is_strict: true,
        violations,
        losses: vec![interop::Loss {
            pointer: "/turns/0/x".to_owned(),
            what: EVIL.to_owned(),
        }],
        hash: Some("sha256:00ff".to_owned()),
        hash_warning: None,
        document: thread::Json::Object(document.into_root()),
    };
    let page = DocumentPage {
        frame: of_thread(ThreadSection::Document),
        key: "t",
        view: &view,
        at: ("", &view.document),
        from: 0,
    };
    let html = main_of(&page.html());
    for part in [
        "invalid",
        "sha256:00ff",
        "/turns/0/x",
        "tp-required",
        "<option value=\"0.0.3\" selected>",
        "href=\"/ui/document/t?version=0.0.3\"",
        "download=\"t.json\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<option value=\"1.0.0\""));
}

#[test]
fn actors_are_shown_with_their_keys() {
    let actor = |id: &str, binding| ActorEntry {
        id: id.to_owned(),
        client: None,
        is_initiator: id == "ada",
        binding,
        capabilities: vec![EVIL.to_owned()],
    };
    let actors = [
        actor("ada", ActorBinding::Own),
        actor(EVIL, ActorBinding::Nobody),
        actor("shop", ActorBinding::Other(Some("front".to_owned()))),
        actor("bank", ActorBinding::Other(None)),
    ];
    let page = RequestsPage {
        frame: of_thread(ThreadSection::Requests),
        key: "t",
        actors: &actors,
        requests: &[],
    };
    let html = main_of(&page.html());
    for part in [
        "your key",
        "not bound to a key",
        "the key <bdi>front</bdi>",
        "another key",
        "began the thread",
        "Nobody has requested",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

fn connections(key: &str, needs_key: bool) -> String {
    let page = ConnectPage {
        frame: of_thread(ThreadSection::Connect),
        target: ConnectTarget {
            base: "https://looms.example.org",
            key,
            id: "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
            thread_id: "thread_0190a3c45b6d7e8f9a0b1c2d3e4f5061",
            agent: "demo",
            links: &[("threads", "/api/v1/threads"), ("agUi", "/ag-ui")],
            needs_key,
        },
    };
    main_of(&page.html())
}

#[test]
fn samples_have_the_thread_and_a_key_only_if_one_is_needed() {
    let open = connections("support-42", false);
    for part in [
        "curl -N https://looms.example.org/api/v1/threads/support-42/messages",
        "threadId: &quot;support-42&quot;",
        "https://looms.example.org/ag-ui",
        "resume: true",
        "EventSource",
        "--thread=support-42",
    ] {
        assert!(open.contains(part), "{part}: {open}");
    }
    assert!(!open.contains("LOOMLINE_KEY"));
    let closed = connections("support-42", true);
    assert!(closed.contains("$LOOMLINE_KEY") && !closed.contains("EventSource"));
}

#[test]
fn a_hostile_key_is_a_literal_in_samples() {
    let html = connections("it's \"$(id)\"\u{202e}", false);
    for part in [
        r"threadId: &quot;it's \&quot;$(id)\&quot;\u202e&quot;",
        r"--thread=$'it\'s &quot;$(id)&quot;\u202e'",
        "/api/v1/threads/it%27s%20%22%24%28id%29%22%E2%80%AE/messages",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("resume: true"));
}

#[test]
fn agents_are_shown_with_tools_and_relations() {
    let tool = |name: &str, effect| ToolEntry {
        name: name.to_owned(),
        description: EVIL.to_owned(),
        effect,
        needs_approval: true,
        is_external: true,
    };
    let local = AgentEntry {
        name: EVIL.to_owned(),
        description: Some("Travels.".to_owned()),
        provider: "scripted".to_owned(),
        model: "m".to_owned(),
        remote: None,
        is_default: true,
        handoffs: vec!["far".to_owned()],
        subagents: vec!["unknown".to_owned()],
        tools: vec![tool("book", ToolEffect::Each)],
    };
    let far = AgentEntry {
        name: "far".to_owned(),
        remote: Some("agents.example.org".to_owned()),
        tools: Vec::new(),
        ..local.clone()
    };
    let agents = [local, far];
    let page = AgentsPage {
        frame: frame(ConsoleSection::Agents),
        agents: &agents,
        may_write: true,
    };
    let html = main_of(&page.html());
    for part in [
        "href=\"#agent-1\"",
        "<bdi>unknown</bdi>",
        "never runs twice",
        ">needed<",
        "at the client",
        "another server, <code>agents.example.org</code>",
        "href=\"/chat?agent=far\"",
        "default",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn a_server_that_is_not_ready_says_why() {
    let figures = HealthFigures {
        not_ready: Some(("commits_fail", "commits fail")),
        version: "0.1.0",
        store_health: "commits_fail",
        failures: 3,
        runs_limit: Some(64),
        requests: LatencyFigures {
            count: 5,
            percentiles: [Some(0.002), Some(0.5), None],
        },
        ..HealthFigures::default()
    };
    let page = HealthPage {
        frame: frame(ConsoleSection::Health),
        figures,
    };
    let html = main_of(&page.html());
    for part in [
        "<dt>State</dt><dd><span class=\"badge\" data-state=\"error\">not ready</span> commits fail <code>commits_fail</code></dd>",
        "<dt>State</dt><dd><span class=\"badge\" data-state=\"error\">commits fail</span></dd>",
        "3 failed",
        "of at most 64",
        ">2 ms<",
        ">500 ms<",
        "–",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}
