//! Choices of decision requests (AITP-02).

use super::form::{MAX_FIELDS, list_of};
use super::violation::MessageViolation;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many options an answer has (AITP-02).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceType {
    /// One of a list.
    #[default]
    Radio,
    /// One of a row of buttons.
    Confirmation,
    /// One or more.
    Checkbox,
    /// One or more, each with a quantity.
    Products,
}

/// One option that can be chosen: an option of the request or a variant of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The id that the answer uses for the choice.
    pub id: String,
    /// The name, for people.
    pub name: Option<String>,
    /// The description, for people.
    pub description: Option<String>,
    /// The last instant at which its price is valid.
    pub valid_until: Option<Timestamp>,
}

/// The choices of a `request_decision`: options and their variants by ids of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    choice_type: ChoiceType,
    list: Vec<Choice>,
    places: BTreeMap<String, usize>,
}

impl Choices {
    /// Reads the choices in the payload of a `request_decision`; `at` is the payload's JSON pointer.
    /// There are 1 to [`MAX_FIELDS`] choices.
    pub fn read(payload: &Value, at: &str) -> Result<Self, MessageViolation> {
        let name = payload.get("type").and_then(Value::as_str);
        let choice_type = match name {
            Some("confirmation") => ChoiceType::Confirmation,
            Some("checkbox") => ChoiceType::Checkbox,
            Some("products") => ChoiceType::Products,
            Some(_) | None => ChoiceType::Radio,
        };
        let mut read = Self {
            choice_type,
            ..Self::default()
        };
        let at = format!("{at}/options");
        let options = payload.get("options").unwrap_or(&Value::Null);
        for (place, option) in list_of(options, &at)?.iter().enumerate() {
            let at = format!("{at}/{place}");
            let base = choice(option, None, &at)?;
            let variants = match option.get("variants") {
                None | Some(Value::Null) => &[],
                Some(variants) => list_of(variants, &format!("{at}/variants"))?,
            };
            read.add(base.clone(), &at)?;
            for (place, variant) in variants.iter().enumerate() {
                let at = format!("{at}/variants/{place}");
                read.add(choice(variant, Some(&base), &at)?, &at)?;
            }
        }
        if read.list.is_empty() {
            return Err(MessageViolation::new(at, "one option or more"));
        }
        Ok(read)
    }

    fn add(&mut self, choice: Choice, at: &str) -> Result<(), MessageViolation> {
        let place = self.list.len();
        if place >= MAX_FIELDS {
            let expected = format!("at most {MAX_FIELDS} options and variants");
            return Err(MessageViolation::new(at, expected));
        }
        if self.places.insert(choice.id.clone(), place).is_some() {
            let expected = "an id that no two options or variants share";
            return Err(MessageViolation::new(format!("{at}/id"), expected));
        }
        self.list.push(choice);
        Ok(())
    }

    /// How many are chosen.
    pub fn choice_type(&self) -> ChoiceType {
        self.choice_type
    }

    /// Options and their variants, in order.
    pub fn choices(&self) -> &[Choice] {
        &self.list
    }

    /// The choice of this id.
    pub fn find(&self, id: &str) -> Option<&Choice> {
        self.list.get(*self.places.get(id)?)
    }

    /// When the last price has ended, if every choice has a price that ends.
    pub fn valid_until(&self) -> Option<Timestamp> {
        let mut ends = self.list.iter().map(|choice| choice.valid_until);
        ends.try_fold(Timestamp::MIN, |last, end| Some(last.max(end?)))
    }
}

/// Reads a choice. A variant inherits the members of its option that it omits.
fn choice(value: &Value, base: Option<&Choice>, at: &str) -> Result<Choice, MessageViolation> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = |key: &str, inherited: Option<&String>| text(key).or_else(|| inherited.cloned());
    let valid_until = value.pointer("/quote/valid_until").and_then(instant);
    let id = text("id")
        .ok_or_else(|| MessageViolation::new(format!("{at}/id"), "the id of an option"))?;
    Ok(Choice {
        id,
        name: own("name", base.and_then(|base| base.name.as_ref()))
            .or_else(|| text("short_variant_name")),
        description: own(
            "description",
            base.and_then(|base| base.description.as_ref()),
        ),
        valid_until: valid_until.or_else(|| base?.valid_until),
    })
}

/// An instant in RFC 3339.
pub(super) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(options: &Value) -> String {
        let payload = json!({"options": options});
        Choices::read(&payload, "").unwrap_err().pointer
    }

    #[test]
    fn choices_that_are_too_many_or_unreadable_are_refused_and_never_cut() {
        let many = |n: usize| -> Value { (0..n).map(|n| json!({"id": n.to_string()})).collect() };
        let read = Choices::read(&json!({"options": many(MAX_FIELDS)}), "").unwrap();
        assert_eq!(read.choices().len(), MAX_FIELDS);
        assert_eq!(wrong(&many(MAX_FIELDS + 1)), "/options");
        let mut variants = many(MAX_FIELDS - 1);
        variants[7]["variants"] = json!([{"id": "a"}, {"id": "b"}]);
        assert_eq!(wrong(&variants), format!("/options/{}", MAX_FIELDS - 2));
        assert_eq!(wrong(&json!([{"id": "a"}, {"name": "b"}])), "/options/1/id");
        assert_eq!(
            wrong(&json!([{"id": "a", "variants": [{}]}])),
            "/options/0/variants/0/id"
        );
        assert_eq!(wrong(&json!([])), "/options");
    }

    #[test]
    fn an_option_stands_before_its_variants() {
        let options =
            json!([{"id": "hat", "name": "Hat", "variants": [{"id": "red"}]}, {"id": "scarf"}]);
        let read = Choices::read(&json!({"options": options}), "").unwrap();
        let ids: Vec<&str> = read.choices().iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["hat", "red", "scarf"]);
        let variant = read.find("red").and_then(|it| it.name.as_deref());
        assert_eq!(variant, Some("Hat"));
    }
}
