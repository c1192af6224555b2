use super::agents::BEFORE;
use super::{parse, said};
use std::fmt::Write as _;

#[test]
fn what_is_wrong_with_an_external_tool_is_said_with_its_place() {
    let tool = |name: &str, parameters: &str| {
        said(&format!(
            "{BEFORE}tools = [\"compute\"]\nrequires_approval = [\"ask\"]\n[[agents.a.external]]\nname = \"{name}\"\ndescription = \"d\"\nparameters = {parameters}\n"
        ))
    };
    assert!(
        tool("compute", "{ type = \"object\" }")
            .starts_with("line 14, column 8: two tools of this agent")
    );
    assert!(
        tool("a b", "{ type = \"object\" }").starts_with("line 14, column 8: \"a b\" is no name")
    );
    assert!(
        tool("ask", "{ type = \"string\" }")
            .starts_with("line 16, column 14: parameters are a JSON Schema of an object")
    );
    assert!(
        tool("ask", "{ type = \"object\", required = 1 }")
            .starts_with("line 16, column 14: this is no usable")
    );
    assert!(
        tool("ask", "{ type = \"object\" }")
            .starts_with("line 12, column 22: a client runs this tool")
    );
}

fn subagent(agent: &str, prompt: &str) -> String {
    format!(
        "[[agents.a.subagents]]\nagent = \"{agent}\"\nname = \"find\"\ndescription = \"d\"\n\
         parameters = {{ type = \"object\", properties = {{ query = {{}} }} }}\nprompt = \"{prompt}\"\n"
    )
}

#[test]
fn what_is_wrong_with_a_subagent_is_said_with_its_place() {
    let wrong = |text: &str| said(&format!("{BEFORE}{text}"));
    assert!(parse(&format!("{BEFORE}{}", subagent("b", "{query}"))).is_ok());
    assert!(wrong(&subagent("c", "x")).starts_with("line 12, column 9: there is no agent \"c\""));
    assert!(wrong(&subagent("b", "{what}")).starts_with(
        "line 16, column 10: {what} is no property of parameters, expected one of: query"
    ));
    assert!(wrong(&subagent("b", "{query")).starts_with("line 16, column 10: a brace"));
    assert!(wrong(&subagent("b", "")).starts_with("line 16, column 10: the prompt is empty"));
    let twice = subagent("b", "x").repeat(2);
    assert!(
        wrong(&twice).starts_with("line 19, column 8: two tools of this agent are named \"find\"")
    );
    let missing = "[[agents.a.subagents]]\nagent = \"b\"\nname = \"n\"\ndescription = \"d\"\nprompt = \"p\"\n";
    assert!(wrong(missing).contains("missing field `parameters`"));
}

#[test]
fn agents_that_would_call_each_other_without_end_are_refused() {
    assert_eq!(
        said(&format!("{BEFORE}{}", subagent("a", "x"))),
        "line 12, column 9: these agents would call each other without end: a → a"
    );
    let back = subagent("a", "x").replace("[[agents.a.", "[[agents.b.");
    assert_eq!(
        said(&format!("{BEFORE}{}{back}", subagent("b", "x"))),
        "line 18, column 9: these agents would call each other without end: a → b → a"
    );
    // Handing over goes on with the same conversation, so circles are fine.
    let text = format!("{BEFORE}handoffs = [\"b\"]\n").replace(
        "[agents.b]\nmodel = \"m\"\n",
        "[agents.b]\nmodel = \"m\"\nhandoffs = [\"a\"]\n",
    );
    assert!(parse(&text).is_ok());
}

#[test]
fn subagents_are_nested_only_so_deep() {
    let chain = |n: usize| {
        let mut text = "[models.m]\nprovider = \"scripted\"\n".to_owned();
        for at in 0..=n {
            writeln!(text, "[agents.a{at:02}]\nmodel = \"m\"").unwrap();
            if at < n {
                let next = format!("a{:02}", at + 1);
                text +=
                    &subagent(&next, "x").replace("[[agents.a.", &format!("[[agents.a{at:02}."));
            }
        }
        parse(&text).map(|config| config.agents.len())
    };
    assert_eq!(chain(16), Ok(17));
    assert!(chain(17).unwrap_err().message.contains("more than 16 deep"));
    assert!(chain(90).unwrap_err().message.contains("more than 16 deep"));
}
