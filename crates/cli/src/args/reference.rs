//! The reference page of the command line, generated from the arguments.

use super::Arguments;
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
<!-- generated from crates/cli/src/args.rs: UPDATE_CLI=1 cargo test -p loomline-cli reference -->

# Command line

`loomline COMMAND --help` prints the text of this page for one command. [Output for scripts](cli-output.md) has the JSON
shapes and the exit codes.

";

/// The reference page.
fn page() -> String {
    let mut command = Arguments::command();
    command.build();
    let mut text = HEAD.to_owned();
    let _ = write!(text, "## Commands\n\n| command | purpose |\n|---|---|\n");
    for sub in commands(&command) {
        let (name, about) = (sub.get_name(), about(sub));
        let _ = writeln!(text, "| [`{name}`](#loomline-{name}) | {about} |");
    }
    let _ = write!(text, "\n## Global options\n\n");
    options(&command, &mut text, Arg::is_global_set);
    for sub in commands(&command) {
        chapter(sub, &mut text);
    }
    text
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn chapter(command: &Command, text: &mut String) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or_default();
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "\n## {name}\n\n{}.\n\n```text\n{usage}\n```\n",
        about(command)
    );
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let (title, lines) = examples.split_once('\n').unwrap_or_default();
        let lines: Vec<&str> = lines.lines().map(str::trim_start).collect();
        let _ = write!(text, "\n{title}\n\n```text\n{}\n```\n", lines.join("\n"));
    }
    if command.get_arguments().any(is_own) {
        text.push('\n');
        options(command, text, |arg| !arg.is_global_set());
    }
    for sub in commands(command) {
        chapter(sub, text);
    }
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !is_help(arg)
}

fn is_help(arg: &Arg) -> bool {
    matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

fn options(command: &Command, text: &mut String, is_wanted: impl Fn(&Arg) -> bool) {
    text.push_str("| option | meaning |\n|---|---|\n");
    let wanted = command
        .get_arguments()
        .filter(|arg| is_wanted(arg) && !is_help(arg));
    for arg in wanted {
        let _ = writeln!(text, "| `{}` | {} |", name(arg), meaning(arg));
    }
}

/// The name as it is typed, with its value.
fn name(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|value| format!("<{value}>")).collect();
    let takes_value = arg.get_action().takes_values();
    let value = if takes_value {
        values.join(" ")
    } else {
        String::new()
    };
    let mut names: Vec<String> = Vec::new();
    names.extend(arg.get_short().map(|short| format!("-{short}")));
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let name = format!("{} {value}", names.join(", "));
    name.trim().to_owned()
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![format!("{}.", help.replace('|', "\\|"))];
    let values: Vec<_> = arg.get_possible_values();
    let values: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        parts.push(format!("Values: {}.", values.join(", ")));
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|it| it.to_string_lossy())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && defaults != [""] {
        parts.push(format!("Default: `{}`.", defaults.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        parts.push(format!("Variable: `{}`.", variable.to_string_lossy()));
    }
    parts.join(" ")
}

#[test]
fn the_reference_page_is_generated_from_the_arguments() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = page();
    if crate::environment::environment("UPDATE_CLI").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        stored, page,
        "UPDATE_CLI=1 cargo test -p loomline-cli reference writes it"
    );
}

#[test]
fn each_command_has_an_example() {
    fn without(command: &Command, found: &mut Vec<String>) {
        let has_own = command.get_subcommands().next().is_some();
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        if !has_own && command.get_after_help().is_none() {
            found.push(name);
        }
        for sub in commands(command) {
            without(sub, found);
        }
    }
    let mut command = Arguments::command();
    command.build();
    let mut found = Vec::new();
    without(&command, &mut found);
    assert_eq!(found, [""; 0]);
}
