//! Fields of forms whose questions come from others.

use crate::{ids, json};
use maud::{Markup, html};

/// The prefix of the names of fields that are parts of an answer.
const PREFIX: &str = "f.";

/// The kinds of data that browsers may fill in: HTML's tokens for names, addresses and the like. Those
/// of cards and passwords are left out.
const AUTOCOMPLETE: [&str; 24] = [
    "name",
    "honorific-prefix",
    "honorific-suffix",
    "given-name",
    "additional-name",
    "family-name",
    "nickname",
    "organization",
    "organization-title",
    "street-address",
    "address-line1",
    "address-line2",
    "address-line3",
    "address-level1",
    "address-level2",
    "address-level3",
    "address-level4",
    "country",
    "country-name",
    "postal-code",
    "language",
    "email",
    "tel",
    "url",
];

/// Words that questions for secrets have.
const SECRETS: [&str; 17] = [
    "password",
    "passwort",
    "kennwort",
    "passphrase",
    "passcode",
    "pin",
    "secret",
    "private key",
    "private_key",
    "seed phrase",
    "recovery phrase",
    "mnemonic",
    "api key",
    "security code",
    "card number",
    "cvv",
    "cvc",
];

/// The fields of a form as a person filled them in, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledForm {
    /// The fields by name, in order; empty if the form is new.
    pub fields: Vec<(String, String)>,
    /// The errors.
    pub errors: Vec<FormError>,
}

/// An error of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormError {
    /// The JSON pointer in the answer's value; empty for the whole.
    pub pointer: String,
    /// The expected value, to follow the word "expected".
    pub expected: String,
}

impl FormError {
    pub(crate) fn new(pointer: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            expected: expected.into(),
        }
    }
}

impl FilledForm {
    /// Whether nobody has filled in the form.
    pub(crate) fn is_new(&self) -> bool {
        self.fields.is_empty()
    }

    /// The first value of a part of the answer.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        value(&self.fields, name)
    }

    /// Whether a part of the answer has a value.
    pub(crate) fn has(&self, name: &str, expected: &str) -> bool {
        values(&self.fields, name).any(|value| value == expected)
    }

    fn errors_at<'f>(&'f self, pointer: &'f str) -> impl Iterator<Item = &'f str> {
        let errors = self.errors.iter();
        let errors = errors.filter(move |it| {
            let rest = it.pointer.strip_prefix(pointer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        errors.map(|it| it.expected.as_str())
    }

    /// The errors, as a list that gets the focus.
    pub(crate) fn summary(&self) -> Markup {
        html! {
            @if !self.errors.is_empty() {
                div class="wrong" role="alert" tabindex="-1" autofocus {
                    p { "The answer was not sent." }
                    ul {
                        @for error in &self.errors {
                            li dir="auto" {
                                @if !error.pointer.is_empty() { code { (json::visible(error.pointer.trim_start_matches('/'))) } ": " }
                                "expected " (json::visible(&error.expected))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The name of a form's field for a part of the answer.
pub(crate) fn field_name(part: &str) -> String {
    format!("{PREFIX}{part}")
}

/// The first value of a part of the answer.
pub(crate) fn value<'f>(fields: &'f [(String, String)], part: &str) -> Option<&'f str> {
    values(fields, part).next()
}

/// The first value of a part of the answer that is not blank.
pub(crate) fn filled<'f>(fields: &'f [(String, String)], part: &str) -> Option<&'f str> {
    value(fields, part).filter(|value| !value.trim().is_empty())
}

/// All values of a part of the answer.
pub(crate) fn values<'f>(
    fields: &'f [(String, String)],
    part: &str,
) -> impl Iterator<Item = &'f str> {
    let fields = fields
        .iter()
        .filter(move |(name, _)| name.strip_prefix(PREFIX) == Some(part));
    fields.map(|(_, value)| value.as_str())
}

/// The JSON pointer of a member.
pub(crate) fn pointer(member: &str) -> String {
    format!("/{}", member.replace('~', "~0").replace('/', "~1"))
}

/// How a field is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// A line, with HTML's type of it.
    Line(&'static str),
    /// Several lines.
    Area,
    /// One of the options.
    Select,
    /// One of the options, or another text.
    Combobox,
    /// Some of the options.
    Choices,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub(crate) struct FormField<'a> {
    /// The part of the answer.
    pub(crate) part: &'a str,
    pub(crate) control: Control,
    /// The words of the question.
    pub(crate) label: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) default: Option<&'a str>,
    /// The options: the value, and the label for people.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) is_required: bool,
    pub(crate) autocomplete: Option<&'a str>,
}

impl<'a> FormField<'a> {
    /// A line of text.
    pub(crate) fn line(part: &'a str, label: &'a str) -> Self {
        Self {
            part,
            control: Control::Line("text"),
            label,
            description: None,
            default: None,
            options: Vec::new(),
            is_required: false,
            autocomplete: None,
        }
    }

    /// The field must be filled in.
    pub(crate) fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// The field is filled in like this.
    pub(crate) fn filled_by(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// The field as HTML. `id` is the id of its control.
    pub(crate) fn html(&self, id: &str, form: &FilledForm) -> Markup {
        let pointer = pointer(self.part);
        let mut errors: Vec<&str> = form.errors_at(&pointer).collect();
        if !form.is_new() && self.is_required && !self.is_filled(form) {
            errors.push("a value: this field is required");
        }
        let is_wrong = !errors.is_empty();
        let notes = [
            self.description.map(|_| ids::within(id, "d")),
            is_wrong.then(|| ids::within(id, "e")),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        let notes = (!notes.is_empty()).then(|| notes.join(" "));
        let control = ControlParts {
            field: self,
            id,
            name: field_name(self.part),
            notes: notes.as_deref(),
            is_wrong,
            form,
        };
        html! {
            @if self.control == Control::Choices {
                fieldset class="field" data-at=(pointer) aria-describedby=[notes.as_deref()] {
                    legend { (self.caption()) }
                    (self.notes(id))
                    (control.html())
                    (wrong(id, &errors))
                }
            } @else {
                div class="field" data-at=(pointer) {
                    label for=(id) { (self.caption()) }
                    (self.notes(id))
                    (control.html())
                    (wrong(id, &errors))
                }
            }
        }
    }

    fn is_filled(&self, form: &FilledForm) -> bool {
        filled(&form.fields, self.part).is_some()
    }

    fn caption(&self) -> Markup {
        html! {
            span dir="auto" { (json::visible(self.label)) }
            @if self.is_required { span class="quiet" { " (required)" } }
        }
    }

    fn notes(&self, id: &str) -> Markup {
        let texts = [Some(self.part), Some(self.label), self.description];
        html! {
            @if let Some(description) = self.description {
                p class="quiet plain" dir="auto" id=(ids::within(id, "d")) { (json::visible(description)) }
            }
            @if texts.into_iter().flatten().any(asks_for_secret) {
                p class="warn" {
                    "This seems to be a question for a secret. Everyone who may read this thread can read the answer, and it is stored. Don't enter a password, a key or a card number."
                }
            }
        }
    }
}

/// The control of a field.
struct ControlParts<'a> {
    field: &'a FormField<'a>,
    id: &'a str,
    name: String,
    notes: Option<&'a str>,
    is_wrong: bool,
    form: &'a FilledForm,
}

impl ControlParts<'_> {
    fn html(&self) -> Markup {
        let field = self.field;
        let (id, name, notes) = (self.id, self.name.as_str(), self.notes);
        let invalid = self.is_wrong.then_some("true");
        let value = if self.form.is_new() {
            field.default
        } else {
            self.form.value(field.part)
        };
        let autocomplete = field.autocomplete.filter(|it| AUTOCOMPLETE.contains(it));
        let autocomplete = autocomplete.unwrap_or("off");
        html! {
            @match field.control {
                Control::Line(kind) => input id=(id) name=(name) type=(kind) step=[(kind == "number").then_some("any")]
                    value=[value] required[field.is_required] autocomplete=(autocomplete) dir="auto"
                    aria-describedby=[notes] aria-invalid=[invalid];,
                Control::Area => textarea id=(id) name=(name) rows="3" required[field.is_required] autocomplete=(autocomplete)
                    dir="auto" aria-describedby=[notes] aria-invalid=[invalid] { (value.unwrap_or_default()) },
                Control::Combobox => {
                    input id=(id) name=(name) list=(ids::within(id, "l")) value=[value] required[field.is_required]
                        autocomplete="off" dir="auto" aria-describedby=[notes] aria-invalid=[invalid];
                    datalist id=(ids::within(id, "l")) {
                        @for (value, label) in &field.options { option value=(value) { (json::visible(label)) } }
                    }
                },
                Control::Select => select id=(id) name=(name) required[field.is_required] aria-describedby=[notes] aria-invalid=[invalid] {
                    @let chosen = value.filter(|value| field.options.iter().any(|(known, _)| known == value));
                    @if chosen.is_none() || !field.is_required { option value="" selected[chosen.is_none()] { "—" } }
                    @for (value, label) in &field.options {
                        option value=(value) selected[chosen == Some(value.as_str())] { (json::visible(label)) }
                    }
                },
                Control::Choices => @for (value, label) in &field.options {
                    label class="choice" {
                        input type="checkbox" name=(name) value=(value) checked[self.form.has(field.part, value)];
                        span dir="auto" { (json::visible(label)) }
                    }
                },
            }
        }
    }
}

fn wrong(id: &str, errors: &[&str]) -> Markup {
    html! {
        @if !errors.is_empty() {
            p class="wrong" id=(ids::within(id, "e")) {
                @for (place, error) in errors.iter().enumerate() {
                    @if place > 0 { "; " }
                    "expected " (json::visible(error))
                }
            }
        }
    }
}

/// Whether a question seems to be one for a password or another secret.
fn asks_for_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    SECRETS.iter().any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            // A longer word has nothing to do with a short one.
            word.len() > 4
                || !(is_part(before.chars().next_back()) || is_part(after.chars().next()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_for_a_secret_is_recognised() {
        for text in [
            "Your Password",
            "password_2",
            "PIN",
            "Card PIN (4)",
            "CVV",
            "seed phrase",
        ] {
            assert!(asks_for_secret(text), "{text}");
        }
        for text in ["Shipping", "Opinion", "Name", "spinning"] {
            assert!(!asks_for_secret(text), "{text}");
        }
    }

    #[test]
    fn a_secret_gets_a_warning_and_no_password_field() {
        let field = FormField {
            autocomplete: Some("current-password"),
            ..FormField::line("password", "Password")
        };
        let html = field.html("x", &FilledForm::default()).into_string();
        assert!(html.contains("class=\"warn\"") && html.contains("autocomplete=\"off\""));
        assert!(!html.contains("type=\"password\"") && !html.contains("current-password"));
    }

    #[test]
    fn a_hostile_label_is_escaped() {
        let field = FormField {
            description: Some("<script>alert(1)</script>"),
            default: Some("\"><img src=x onerror=y>"),
            options: vec![("\"x".into(), "<b>".into())],
            ..FormField::line("a\"b", "<img src=x>\u{202e}")
        };
        for control in [
            Control::Line("text"),
            Control::Area,
            Control::Select,
            Control::Combobox,
            Control::Choices,
        ] {
            let html = field
                .clone()
                .filled_by(control)
                .html("x", &FilledForm::default());
            let html = html.into_string();
            for bad in ["<script", "<img", "<b>", "\"\"x", "a\"b", "\u{202e}"] {
                assert!(!html.contains(bad), "{bad}: {html}");
            }
        }
    }

    #[test]
    fn an_error_is_shown_at_its_field_and_in_the_summary() {
        let form = FilledForm {
            fields: vec![("f.a/b".into(), "x".into())],
            errors: vec![FormError::new("/a~1b", "a number")],
        };
        let html = FormField::line("a/b", "A").html("i", &form).into_string();
        assert!(html.contains("aria-invalid=\"true\"") && html.contains("expected a number"));
        assert!(html.contains("value=\"x\""));
        let summary = form.summary().into_string();
        assert!(summary.contains("autofocus") && summary.contains("expected a number"));
    }
}
