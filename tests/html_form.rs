//! The forms of a page, read and filled in as a browser does, for tests.

use std::collections::BTreeMap;

/// A form of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct HtmlForm {
    /// The address that it is sent to.
    pub(crate) action: String,
    /// Its controls, in order.
    pub(crate) controls: Vec<HtmlControl>,
}

/// A control of a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct HtmlControl {
    /// The element: `input`, `select`, `textarea` or `button`.
    pub(crate) tag: String,
    /// Its attributes.
    pub(crate) attributes: BTreeMap<String, String>,
    /// The values of a select, each with whether it is selected.
    pub(crate) options: Vec<(String, bool)>,
    /// The text within it.
    pub(crate) text: String,
}

impl HtmlControl {
    /// An attribute; empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }

    fn value(&self) -> String {
        match self.tag.as_str() {
            "textarea" => self.text.clone(),
            "select" => {
                let mut options = self.options.iter();
                let selected = options.clone().find(|(_, is_selected)| *is_selected);
                let chosen = selected.or_else(|| options.next());
                chosen.map(|(value, _)| value.clone()).unwrap_or_default()
            }
            _ => self.get("value").to_owned(),
        }
    }
}

impl HtmlForm {
    /// The fields that a browser sends. `answer` fills in controls that a person sees; of radio buttons
    /// without an answer the first is chosen, and the first button with a name is pressed.
    pub(crate) fn filled(
        &self,
        answer: impl Fn(&HtmlControl) -> Option<String>,
    ) -> Vec<(String, String)> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for control in self.controls.iter().filter(|it| !it.get("name").is_empty()) {
            let name = control.get("name").to_owned();
            let is_new = !fields.iter().any(|(known, _)| *known == name);
            let value = match (control.tag.as_str(), control.get("type")) {
                ("input", "hidden") => Some(control.value()),
                ("input", "radio") => match answer(control) {
                    Some(chosen) => (chosen == control.value()).then_some(chosen),
                    None => is_new.then(|| control.value()),
                },
                ("input", "checkbox") => match answer(control) {
                    Some(chosen) => (chosen == control.value()).then_some(chosen),
                    None => control.has("checked").then(|| control.value()),
                },
                ("button", _) => match answer(control) {
                    Some(pressed) => (pressed == control.value()).then_some(pressed),
                    None => is_new.then(|| control.value()),
                },
                _ => Some(answer(control).unwrap_or_else(|| control.value())),
            };
            fields.extend(value.map(|value| (name, value)));
        }
        fields
    }

    /// The control with a name.
    pub(crate) fn control(&self, name: &str) -> Option<&HtmlControl> {
        self.controls.iter().find(|it| it.get("name") == name)
    }
}

/// The forms of a page that are sent to an address.
pub(crate) fn forms(html: &str, action: &str) -> Vec<HtmlForm> {
    let all = all_forms(html).into_iter();
    all.filter(|form| form.action == action).collect()
}

fn all_forms(html: &str) -> Vec<HtmlForm> {
    let mut forms: Vec<HtmlForm> = Vec::new();
    let mut is_open = false;
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        let controls = forms
            .last_mut()
            .filter(|_| is_open)
            .map(|form| &mut form.controls);
        if let Some(last) = controls.and_then(|controls| controls.last_mut())
            && ["textarea", "button"].contains(&last.tag.as_str())
        {
            last.text.push_str(&unescaped(before));
        }
        let (tag, attributes, tail) = element(after);
        rest = tail;
        match tag.as_str() {
            "form" => {
                is_open = true;
                let action = attributes.get("action").cloned().unwrap_or_default();
                forms.push(HtmlForm {
                    action,
                    controls: Vec::new(),
                });
            }
            "/form" => is_open = false,
            "input" | "select" | "textarea" | "button" if is_open => {
                let control = HtmlControl {
                    tag,
                    attributes,
                    ..HtmlControl::default()
                };
                if let Some(form) = forms.last_mut() {
                    form.controls.push(control);
                }
            }
            "option" if is_open => {
                let value = attributes.get("value").cloned().unwrap_or_default();
                let control = forms.last_mut().and_then(|form| form.controls.last_mut());
                if let Some(select) = control.filter(|it| it.tag == "select") {
                    select
                        .options
                        .push((value, attributes.contains_key("selected")));
                }
            }
            "/textarea" | "/button" => {
                // Text behind it is no longer its own.
                let control = forms.last_mut().and_then(|form| form.controls.last_mut());
                if let Some(control) = control {
                    let text = std::mem::take(&mut control.text);
                    control.attributes.insert("text".to_owned(), text.clone());
                    control.text = text;
                }
            }
            _ => {}
        }
    }
    for control in forms.iter_mut().flat_map(|form| &mut form.controls) {
        if let Some(text) = control.attributes.remove("text") {
            control.text = text;
        }
    }
    forms
}

/// The name and the attributes of an element, and the text after it.
fn element(text: &str) -> (String, BTreeMap<String, String>, &str) {
    let end = text
        .find(|c: char| c.is_whitespace() || c == '>')
        .unwrap_or(text.len());
    let (tag, mut rest) = text.split_at(end);
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('>') {
            return (tag.to_owned(), attributes, after);
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '=' || c == '>');
        let Some(end) = end else {
            return (tag.to_owned(), attributes, "");
        };
        let (name, after) = rest.split_at(end);
        rest = after;
        let mut value = String::new();
        if let Some(quoted) = after.strip_prefix("=\"") {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            value = unescaped(text);
            rest = after;
        }
        attributes.insert(name.to_owned(), value);
    }
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// A plausible answer of a person in a control.
pub(crate) fn plausible(control: &HtmlControl) -> Option<String> {
    let part = control.get("name").strip_prefix("f.")?;
    let hex = |n: usize| format!("0x{}", "a1".repeat(n / 2));
    Some(match (part, control.get("type")) {
        (_, "radio" | "hidden") => return None,
        (_, "checkbox") => control.get("value").to_owned(),
        (_, "email") => "ada@example.com".to_owned(),
        (_, "number") => "7".to_owned(),
        (_, "tel") => "+1 555 1234".to_owned(),
        _ if control.tag == "select" => control.options.last()?.0.clone(),
        _ if control.tag == "button" => return None,
        ("accounts", _) => "ada.near\nbob.near".to_owned(),
        ("addresses", _) => hex(40),
        ("address", _) => "0x742d35Cc6634C0532925a3b844Bc454e4438f44e".to_owned(),
        ("transaction_hash", _) => hex(64),
        ("signature", _) => hex(8),
        ("new_balance" | "amount", _) => "75.50".to_owned(),
        ("*", _) => r#"{"city": "Bonn"}"#.to_owned(),
        _ => "something".to_owned(),
    })
}
