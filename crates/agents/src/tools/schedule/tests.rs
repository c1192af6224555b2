use super::*;
use serde_json::json;
use upp::{Arguments, Tool, ToolContext};

fn tool(name: &str) -> Tool {
    Tool::new(
        name,
        "",
        json!({"type": "object"}),
        |arguments, _: ToolContext| {
            Box::pin(std::future::ready(Ok(arguments)))
                as futures_util::future::BoxFuture<'static, _>
        },
    )
}

fn tools() -> Vec<Tool> {
    let mut last = tool("last");
    last.depends_on = vec!["free".to_owned()];
    let mut lock = tool("lock");
    lock.sequential = true;
    let mut late_lock = tool("late_lock");
    late_lock.sequential = true;
    late_lock.depends_on = vec!["free".to_owned()];
    vec![tool("free"), last, lock, late_lock]
}

/// `"b:free>a"` is the call `b` of `free` after `a`.
fn calls(text: &str) -> Vec<ToolCall> {
    let call = |text: &str| {
        let (id, rest) = text.split_once(':').unwrap();
        let mut parts = rest.split('>');
        ToolCall {
            tool_call_id: id.into(),
            tool_name: parts.next().unwrap().into(),
            arguments: Arguments::from_text("{}"),
            after: parts.map(ToolCallId::from).collect(),
        }
    };
    text.split_whitespace().map(call).collect()
}

fn check(text: &str) -> Result<Vec<Vec<usize>>, String> {
    let tools = tools();
    order(&calls(text), |name| {
        tools.iter().find(|tool| tool.name == name)
    })
    .map(|needs| {
        needs
            .into_iter()
            .map(|own| own.into_iter().collect())
            .collect()
    })
    .map_err(|disorder| disorder.to_string())
}

fn needs<const N: usize>(expected: [&[usize]; N]) -> Vec<Vec<usize>> {
    expected.iter().map(|own| own.to_vec()).collect()
}

#[test]
fn calls_wait_for_nothing_unless_told() {
    assert_eq!(check("a:free b:free c:ghost"), Ok(needs([&[], &[], &[]])));
}

#[test]
fn a_call_waits_for_all_calls_of_the_tools_it_depends_on() {
    assert_eq!(
        check("a:last b:free c:free"),
        Ok(needs([&[1, 2], &[], &[]]))
    );
}

#[test]
fn a_dependency_that_is_not_called_holds_nobody_back() {
    assert_eq!(check("a:last"), Ok(needs([&[]])));
}

#[test]
fn a_call_waits_for_those_the_model_names() {
    assert_eq!(
        check("a:free b:free>a c:free>b>a"),
        Ok(needs([&[], &[0], &[0, 1]]))
    );
}

#[test]
fn everything_waits_for_a_sequential_tool() {
    assert_eq!(check("a:free b:lock c:free"), Ok(needs([&[1], &[], &[1]])));
}

#[test]
fn sequential_tools_follow_each_other() {
    assert_eq!(check("a:lock b:free c:lock"), Ok(needs([&[], &[2], &[0]])));
}

#[test]
fn what_a_sequential_tool_needs_runs_before_it() {
    assert_eq!(
        check("a:late_lock b:free c:ghost"),
        Ok(needs([&[1], &[], &[0]]))
    );
    assert_eq!(
        check("a:lock b:late_lock c:free"),
        Ok(needs([&[], &[0, 2], &[0]]))
    );
}

#[test]
fn a_cycle_is_named() {
    assert_eq!(
        check("a:free>b b:free>a c:free").unwrap_err(),
        "No tool was run: the calls 'a', 'b' wait for each other."
    );
    assert!(check("a:free>a").is_err());
    assert!(
        check("a:free>b b:last").is_err(),
        "`after` against `depends_on`"
    );
}

#[test]
fn an_unknown_call_is_named() {
    assert_eq!(
        check("a:free>z").unwrap_err(),
        "No tool was run: the call 'a' waits for 'z', which is no call of this response."
    );
}
