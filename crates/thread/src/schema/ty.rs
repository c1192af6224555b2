//! The schema of one type, built member by member.

use super::context::Context;
use super::words;
use crate::json::{Json, Object};
use crate::validate::fields::{Field, Shape};
use crate::validate::parts::ATTACHMENTS;

/// The schema of one type.
pub(super) struct Type<'v> {
    context: Context<'v>,
    name: &'static str,
    required: Vec<&'static str>,
    members: Object,
    rules: Vec<Json>,
}

impl<'v> Type<'v> {
    /// An object of the protocol, by its name there.
    pub(super) fn new(context: Context<'v>, name: &'static str) -> Self {
        Self {
            context,
            name,
            required: Vec::new(),
            members: Object::new(),
            rules: Vec::new(),
        }
    }

    /// The members of a table; a later table overrides an earlier one.
    pub(super) fn fields(mut self, fields: &[Field]) -> Self {
        for field in fields {
            let must = self.context.requires(field.need);
            if must {
                self.require(field.name);
            }
            let schema = self.described(field.name);
            let schema = shaped(schema, field.shape, !must);
            self.members.insert(field.name, schema);
        }
        self
    }

    /// The member that names the kind: one of `values`.
    pub(super) fn tagged(mut self, member: &'static str, values: &[&str]) -> Self {
        let schema = self.described(member);
        let schema = match values {
            [value] => schema.with("const", *value),
            _ => schema.with("enum", texts(values)),
        };
        self.require(member);
        self.members.insert(member, schema);
        self
    }

    /// A required member with this schema.
    pub(super) fn required(mut self, member: &'static str, schema: &Object) -> Self {
        self.require(member);
        self.optional(member, schema)
    }

    /// An optional member with this schema.
    pub(super) fn optional(mut self, member: &'static str, schema: &Object) -> Self {
        let mut described = self.described(member);
        for (key, value) in schema {
            described.insert(key, value.clone());
        }
        self.members.insert(member, described);
        self
    }

    /// One more keyword for a member.
    pub(super) fn keyword(
        mut self,
        member: &str,
        keyword: &'static str,
        value: impl Into<Json>,
    ) -> Self {
        let schema = self.members.get_mut(member).and_then(Json::as_object_mut);
        if let Some(schema) = schema {
            schema.insert(keyword, value);
        }
        self
    }

    /// The object in a member is of a type.
    pub(super) fn object(mut self, member: &str, name: &str) -> Self {
        let schema = self.members.get_mut(member).and_then(Json::as_object_mut);
        if let Some(schema) = schema {
            if schema.get_str("type") == Some("object") {
                schema.remove("type");
                schema.insert("$ref", pointer(name));
            } else {
                schema.insert("if", Object::new().with("type", "object"));
                schema.insert("then", reference(name));
            }
        }
        self
    }

    /// The elements of a member are of a type.
    pub(super) fn items(self, member: &str, name: &str) -> Self {
        self.keyword(member, "items", reference(name))
    }

    /// Adds the users' attachments.
    pub(super) fn attachments(self) -> Self {
        self.fields(ATTACHMENTS).items("attachments", "Attachment")
    }

    /// The values of a member, whatever their keys, are of a type.
    pub(super) fn values(self, member: &str, name: &str) -> Self {
        self.keyword(member, "additionalProperties", reference(name))
    }

    /// A rule over several members.
    pub(super) fn rule(mut self, rule: Object) -> Self {
        self.rules.push(rule.into());
        self
    }

    /// The schema.
    pub(super) fn finish(self) -> (&'static str, Object) {
        let about = words::about(self.name).unwrap_or_default();
        let mut schema = Object::new()
            .with("description", about)
            .with("type", "object");
        if !self.required.is_empty() {
            schema.insert("required", texts(&self.required));
        }
        schema.insert("properties", self.members);
        if !self.rules.is_empty() {
            schema.insert("allOf", self.rules);
        }
        (self.name, schema)
    }

    fn require(&mut self, member: &'static str) {
        if !self.required.contains(&member) {
            self.required.push(member);
        }
    }

    fn described(&self, member: &str) -> Object {
        let words = words::member(self.name, member).unwrap_or_default();
        Object::new().with("description", words)
    }
}

/// The JSON Pointer of a type's schema.
fn pointer(name: &str) -> String {
    format!("#/$defs/{name}")
}

/// A reference to a type.
pub(super) fn reference(name: &str) -> Object {
    Object::new().with("$ref", pointer(name))
}

/// An object of a type, or `null`, which is as good as nothing.
pub(super) fn object_or_null(name: &str) -> Object {
    Object::new()
        .with("type", texts(&["object", "null"]))
        .with("if", Object::new().with("type", "object"))
        .with("then", reference(name))
}

/// Strings as JSON.
pub(super) fn texts(texts: &[&str]) -> Json {
    texts.iter().copied().collect()
}

/// An object whose member `tag` is one of `values`.
pub(super) fn is(tag: &str, values: &[&str]) -> Object {
    let value = match values {
        [value] => Object::new().with("const", *value),
        _ => Object::new().with("enum", texts(values)),
    };
    Object::new()
        .with("type", "object")
        .with("required", texts(&[tag]))
        .with("properties", Object::new().with(tag, value))
}

/// A conditional schema: `then` applies if `condition` does.
pub(super) fn when(condition: Object, then: Object) -> Object {
    Object::new().with("if", condition).with("then", then)
}

/// Members with one keyword each, for rules.
pub(super) fn member(name: &str, schema: Object) -> Object {
    Object::new().with("properties", Object::new().with(name, schema))
}

/// Nothing but `null`, which is as good as nothing.
pub(super) fn nothing() -> Object {
    Object::new().with("type", "null")
}

/// Adds the constraints of a shape.
fn shaped(schema: Object, shape: Shape, or_null: bool) -> Object {
    let typed = |schema: Object, types: &[&str]| match (types, or_null) {
        ([ty], false) => schema.with("type", *ty),
        (_, false) => schema.with("type", texts(types)),
        (_, true) => schema.with("type", texts(&[types, &["null"]].concat())),
    };
    match shape {
        Shape::Any => schema,
        Shape::Text | Shape::Uuid => typed(schema, &["string"]),
        Shape::Timestamp => typed(schema, &["string"]).with("$ref", pointer("Timestamp")),
        Shape::Object => typed(schema, &["object"]),
        Shape::Array => typed(schema, &["array"]),
        Shape::Texts => {
            typed(schema, &["array"]).with("items", Object::new().with("type", "string"))
        }
        Shape::Count => typed(schema, &["integer"]).with("minimum", 0),
        Shape::TextOrArray => typed(schema, &["string", "array"]),
        Shape::OneOf(legal) if or_null => {
            let legal = legal.iter().map(|legal| Json::from(*legal));
            schema.with("enum", legal.chain([Json::Null]).collect::<Json>())
        }
        Shape::OneOf(legal) => schema.with("enum", texts(legal)),
    }
}
