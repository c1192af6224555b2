use super::*;
use crate::form_field::FormError;
use crate::html_form::{HtmlForm, forms, plausible};
use crate::patch::Patch;
use crate::reference::reference;
use crate::{Conversation, ids};
use interop::aitp::{AitpState, Message, Request, RequestQuestion, Schemas};
use serde_json::json;
use timeline::{Command, NewItem, NewThread, Record, Role, Seq, State, Transcript};

const NOW: &str = "2025-02-25T08:00:00Z";
const DECISIONS: &str = "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json";
const DATA: &str = "https://aitp.dev/capabilities/aitp-03-data-request/v1.0.0/schema.json";
const PAYMENTS: &str = "https://aitp.dev/capabilities/aitp-01-payments/v1.0.0/schema.json";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A thread in which capability messages are recorded.
#[derive(Default)]
struct Desk {
    log: State,
    state: AitpState,
    seq: Seq,
}

impl Desk {
    fn new() -> Self {
        let mut desk = Self::default();
        desk.run(Command::Create {
            thread: NewThread::new("t", None),
            context_id: "c".into(),
        });
        desk
    }

    fn run(&mut self, command: Command) {
        for event in self.log.decide(command, now()).unwrap() {
            self.log.apply(&event);
            self.seq = self.seq.next();
            self.state.apply(&Record {
                seq: self.seq,
                at: now(),
                event,
            });
        }
    }

    fn record(&mut self, id: &str, role: Role, message: &Value) {
        let part = json!([{"type": "input_text", "text": message.to_string()}]);
        let mut item = NewItem::user(id, part.into());
        item.role = Some(role);
        let accepted = self
            .state
            .judge_as("key", &item, interop::aitp::Strictness::Lenient, now());
        let item = accepted.unwrap().item;
        self.run(Command::Record { item });
    }

    fn requests(&self) -> Vec<CapabilityRequest> {
        let requests = self.state.ledger().requests();
        requests.map(|request| self.view(request)).collect()
    }

    fn view(&self, request: &Request) -> CapabilityRequest {
        let question = self.state.question_about(request).unwrap();
        let party = |party: &Party| ThreadParty {
            party: party.clone(),
            name: None,
            is_bound: false,
            is_own: false,
        };
        let terms = &request.ask;
        CapabilityRequest {
            thread_key: "t".to_owned(),
            id: terms.key.text(),
            topic: terms.key.topic,
            message_type: terms.message_type.clone(),
            anchor: request.item_id.as_str().to_owned(),
            seq: request.seq.0,
            state: request.state(now()),
            by: party(&terms.by),
            answerers: vec![party(&Party::Initiator)],
            answerability: Answerability::Allowed(Vec::new()),
            created_at: request.at,
            expires_at: request.life.expires_at,
            title: question.title.clone(),
            remark: question.remark(),
            payload: terms.payload.value(),
            signed: question.signed_json(),
            work: Some(question.work().clone()),
            answer_schema: question.schema,
            answer: request.answer().map(|answer| RequestAnswer {
                by: party(&answer.by),
                at: answer.at,
                message_type: answer.message_type.clone(),
                payload: answer.payload.as_ref().map(timeline::Payload::value),
            }),
            n_answers: request.answers.len(),
            n_late: request.late.len(),
            closing: RequestClosing::default(),
            settlement: request.life.settlement,
            idempotency_key: "k".to_owned(),
            back: None,
        }
    }
}

/// A thread with this request, and its view.
fn asking(message: &Value) -> (Desk, CapabilityRequest) {
    let mut desk = Desk::new();
    desk.record("ask", Role::Assistant, message);
    let request = desk.requests().remove(0);
    (desk, request)
}

fn only_form(request: &CapabilityRequest) -> HtmlForm {
    forms(&request.html().into_string(), "/ui/request").remove(0)
}

/// The message that the filled-in form becomes.
fn answered(
    desk: &Desk,
    request: &CapabilityRequest,
    fields: &[(String, String)],
) -> Result<Message, Vec<FormError>> {
    let value = request.answer_value(fields)?;
    let question: RequestQuestion = desk.state.pending(now()).remove(0);
    let answer = question.answer(Schemas::shared().unwrap(), &value, now());
    answer.map_err(|wrong| {
        let wrong = wrong.into_iter();
        wrong
            .map(|it| FormError::new(it.pointer, it.expected))
            .collect()
    })
}

fn decision(kind: &str, options: &Value) -> Value {
    json!({"$schema": DECISIONS, "request_decision": {
        "id": "d", "title": "Which?", "description": "Choose.", "type": kind, "options": options}})
}

fn quote() -> Value {
    json!({"$schema": PAYMENTS, "quote": {
        "quote_id": "q", "merchant_id": "shop.near", "description": "A hat. Pay only 1 USD!", "merchant_signature": "ed25519:x",
        "expiration": "2025-03-01T12:00:00Z", "payment_options": [
            {"amount": "99.90", "currency": "USD", "payment_methods": [{"type": "near_payment_channel", "token": "usdc.near", "recipient": "shop.near"}]},
            {"amount": "0.000000000000000000123", "currency": "NEAR", "payment_methods": [{"type": "near_payment_channel", "token": "near", "recipient": "shop.near"}]}]}})
}

#[test]
fn the_form_of_every_published_request_makes_a_valid_answer() {
    let Some(path) = reference("the published examples") else {
        return;
    };
    let text = std::fs::read_to_string(path.join("schemas/aitp/doc-examples.json")).unwrap();
    let examples: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut n_requests = 0;
    for example in examples.iter().filter(|it| it["valid"] == true) {
        let text = example["message"].to_string();
        let card = capability_card(&text).unwrap().into_string();
        assert!(card.contains("<summary>JSON</summary>"), "{text}");
        let kind = example["kind"].as_str().unwrap();
        if !(kind.starts_with("request") || kind.ends_with("quote") || kind == "top_up_request") {
            continue;
        }
        n_requests += 1;
        let (desk, request) = asking(&example["message"]);
        let fields = only_form(&request).filled(plausible);
        let message = answered(&desk, &request, &fields);
        assert!(message.is_ok(), "{text}\n{fields:?}\n{message:?}");
    }
    assert!(n_requests > 30, "{n_requests}");
}

#[test]
fn a_radio_choice_becomes_its_option() {
    let options = json!([{"id": "a", "name": "A"}, {"id": "b", "name": "B", "variants": [{"id": "b2", "short_variant_name": "small"}]}]);
    let (desk, request) = asking(&decision("radio", &options));
    let form = only_form(&request);
    assert!(
        !form
            .controls
            .iter()
            .any(|it| it.attributes.contains_key("checked"))
    );
    let fields = form.filled(|control| (control.get("type") == "radio").then(|| "b2".to_owned()));
    let message = answered(&desk, &request, &fields).unwrap();
    let expected = json!([{"id": "b2", "name": "B"}]);
    assert_eq!(message.payload().unwrap()["options"], expected);
}

#[test]
fn a_checkbox_without_a_choice_is_refused_at_its_options() {
    let (desk, request) = asking(&decision("checkbox", &json!([{"id": "a"}, {"id": "b"}])));
    let form = only_form(&request);
    let both = form.filled(plausible);
    let message = answered(&desk, &request, &both).unwrap();
    assert_eq!(
        message.payload().unwrap()["options"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let errors = answered(&desk, &request, &form.filled(|_| None)).unwrap_err();
    assert!(errors[0].pointer.is_empty() || errors[0].pointer.starts_with("/options"));
}

#[test]
fn a_confirmation_has_a_button_for_each_option_and_no_preselection() {
    let options = json!([{"id": "yes", "name": "Yes"}, {"id": "no", "name": "No"}, {"id": "?", "name": "Later"}]);
    let (desk, request) = asking(&decision("confirmation", &options));
    let form = only_form(&request);
    let buttons: Vec<&str> = form
        .controls
        .iter()
        .filter(|it| it.tag == "button")
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(buttons, ["Yes", "No", "Later"]);
    assert!(!request.html().into_string().contains("class=\"primary\""));
    let pressed = form.filled(|control| (control.tag == "button").then(|| "no".to_owned()));
    let message = answered(&desk, &request, &pressed).unwrap();
    assert_eq!(message.payload().unwrap()["options"][0]["id"], "no");
}

#[test]
fn products_have_variants_quantities_and_no_image_of_their_own() {
    let options = json!([
        {"id": "hat", "name": "Hat", "image_url": "https://img.example/h.png", "five_star_rating": 4.2, "reviews_count": 7,
            "quote": {"type": "Quote", "quote_id": "q", "payee_id": "p", "valid_until": "2050-01-01T00:00:00Z",
                "payment_plans": [{"plan_id": "x", "plan_type": "one-time", "amount": 199.5, "currency": "USD"}]},
            "variants": [{"id": "hat-red", "short_variant_name": "Red"}]},
        {"id": "scarf", "name": "Scarf", "image_url": "javascript:alert(1)"}]);
    let (desk, request) = asking(&decision("products", &options));
    let html = request.html().into_string();
    for part in [
        "199.5 USD",
        "4.2 of 5 stars",
        "7 reviews",
        "Image at img.example",
        ">Red",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<img") && !html.contains("javascript:"));
    let form = only_form(&request);
    assert_eq!(form.control("f.n.0").unwrap().options.len(), 10);
    let fields = form.filled(|control| match control.get("name") {
        "f.take.0" => Some("hat".to_owned()),
        "f.variant.0" => Some("hat-red".to_owned()),
        "f.n.0" => Some("3".to_owned()),
        _ => None,
    });
    let message = answered(&desk, &request, &fields).unwrap();
    let expected = json!([{"id": "hat-red", "name": "Hat", "quantity": 3}]);
    assert_eq!(message.payload().unwrap()["options"], expected);
}

#[test]
fn a_data_form_shows_its_fields_and_errors_beside_them() {
    let form = json!({"fields": [
        {"id": "country", "label": "Country", "type": "select", "required": true, "options": [{"value": "de", "label": "Germany"}, "fr"]},
        {"id": "mail", "type": "email", "autocomplete": "email", "default_value": "a@b.c"},
        {"id": "card", "label": "Card", "autocomplete": "cc-number"},
        {"id": "colour", "type": "combobox", "options": ["red"]},
        {"id": "bio", "type": "textarea"}, {"id": "n", "type": "number"}, {"id": "tel", "type": "tel"}]});
    let ask = json!({"$schema": DATA, "request_data": {"id": "f", "description": "Where?", "form": form}});
    let (desk, request) = asking(&ask);
    let html = request.html().into_string();
    for part in [
        ">Germany</option>",
        "<datalist",
        "autocomplete=\"email\"",
        "value=\"a@b.c\"",
        "<textarea",
        "type=\"tel\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("cc-number"));
    let form = only_form(&request);
    let fields = form.filled(|control| match control.get("name") {
        "f.country" => Some("de".to_owned()),
        "f.n" => Some("many".to_owned()),
        _ => None,
    });
    let errors = answered(&desk, &request, &fields).unwrap_err();
    assert_eq!(errors[0].pointer, "/n");
    let filled = FilledForm { fields, errors };
    let html = request.html_with(&filled).into_string();
    assert!(html.contains("value=\"many\"") && html.contains("aria-invalid=\"true\""));
    assert!(html.contains("<code>n</code>: expected a number"));
    let empty = FilledForm {
        fields: form.filled(|_| Some(String::new())),
        errors: Vec::new(),
    };
    assert!(
        request
            .html_with(&empty)
            .into_string()
            .contains("this field is required")
    );
}

#[test]
fn a_form_that_was_not_fetched_takes_further_answers_as_json() {
    let ask = json!({"$schema": DATA, "request_data": {"id": "f", "description": "Where?",
        "form": {"json_url": "https://forms.example/a.json"}}});
    let (desk, request) = asking(&ask);
    assert!(request.html().into_string().contains("forms.example"));
    let wrong = [("f.*".to_owned(), "[]".to_owned())];
    assert_eq!(
        answered(&desk, &request, &wrong).unwrap_err()[0].pointer,
        "/*"
    );
    let right = [("f.*".to_owned(), r#"{"city": "Bonn"}"#.to_owned())];
    let message = answered(&desk, &request, &right).unwrap();
    assert_eq!(message.payload().unwrap()["fields"][0]["value"], "Bonn");
}

#[test]
fn a_payment_shows_facts_before_words_and_repeats_the_amount() {
    let (desk, request) = asking(&quote());
    let html = request.html().into_string();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
    assert!(at("99.90 USD (Way: near_payment_channel") < at("Pay only 1 USD!"));
    assert!(at("What is signed, complete") < at("In the words of"));
    let ways = forms(&html, "/ui/request");
    assert_eq!(ways.len(), 2);
    assert!(html.contains("Pay 0.000000000000000000123 NEAR</button>"));
    let message = answered(&desk, &request, &ways[1].filled(plausible)).unwrap();
    let paid = &message.payload().unwrap()["payment_method"];
    assert_eq!(paid["amount"], "0.000000000000000000123");
    assert_eq!(paid["currency"], "NEAR");
}

#[test]
fn a_payment_is_pending_then_failed_or_paid() {
    let (mut desk, request) = asking(&quote());
    let fields = only_form(&request).filled(plausible);
    let message = answered(&desk, &request, &fields).unwrap();
    desk.record("pay", Role::User, &Value::Object(message.value));
    let shown = |desk: &Desk| desk.requests().remove(0);
    let html = shown(&desk).html().into_string();
    assert!(html.contains("pending") && !html.contains("/ui/request"));
    let result = |result: &str| {
        json!({"$schema": PAYMENTS, "payment_confirmation": {"quote_id": "q", "payment_id": "p", "result": result,
            "timestamp": NOW, "merchant_signature": "ed25519:z"}})
    };
    desk.record("no", Role::Assistant, &result("failure"));
    let html = shown(&desk).html().into_string();
    assert!(html.contains("failed") && html.contains("/ui/request"));
    desk.record("yes", Role::Assistant, &result("success"));
    assert!(shown(&desk).html().into_string().contains("paid"));
}

#[test]
fn a_wallet_request_shows_all_that_is_signed_first() {
    let schema = "https://aitp.dev/capabilities/aitp-05-evm-wallet/v1.0.0/schema.json";
    let long = "0x".to_owned() + &"ab".repeat(50_000);
    let ask = json!({"$schema": schema, "request_transaction": {"request_id": "r", "description": "Harmless \u{202e}",
        "transaction": {"to": "0x1234567890123456789012345678901234567890", "data": long}}});
    let (_, request) = asking(&ask);
    let html = request.html().into_string();
    assert!(html.contains(&long), "nothing is cut");
    assert!(html.find("What is signed").unwrap() < html.find("Harmless").unwrap());
    assert!(html.contains("name=\"f.transaction_hash\""));
}

#[test]
fn a_closed_request_has_no_form_and_says_why() {
    let (_, open) = asking(&decision("radio", &json!([{"id": "a"}])));
    let states = [
        (RequestState::Declined, "declined"),
        (RequestState::Cancelled, "cancelled by its author"),
        (RequestState::Expired, "expired"),
        (RequestState::Superseded, "replaced by a newer request"),
    ];
    for (state, words) in states {
        let closed = CapabilityRequest {
            state,
            n_late: 2,
            expires_at: Some(now()),
            closing: RequestClosing {
                reason: Some("No <b>hats</b>".to_owned()),
                ..RequestClosing::default()
            },
            ..open.clone()
        };
        let html = closed.html().into_string();
        assert!(html.contains(words) && !html.contains("<form"), "{html}");
        assert!(html.contains("2 answers came too late") && html.contains("No &lt;b&gt;hats"));
        assert!(!closed.waits_for_caller());
    }
}

#[test]
fn a_request_that_others_answer_says_who_may() {
    let (_, open) = asking(&decision("radio", &json!([{"id": "a"}])));
    let foreign = CapabilityRequest {
        answerability: Answerability::Refused("not declared".to_owned()),
        ..open
    };
    let html = foreign.html().into_string();
    assert!(!html.contains("<form") && html.contains("not declared"));
    assert!(html.contains("the person who began the thread"));
}

#[test]
fn an_open_request_can_be_declined_and_tells_its_end() {
    let (_, open) = asking(&decision("radio", &json!([{"id": "a"}])));
    let open = CapabilityRequest {
        expires_at: Some(now()),
        answerability: Answerability::Allowed(vec!["a\"<b>".to_owned(), "b".to_owned()]),
        ..open
    };
    let html = open.html().into_string();
    assert!(html.contains("until <time"), "{html}");
    let decline = forms(&html, "/ui/decline").remove(0);
    assert!(decline.control("reason").is_some());
    let actors = &decline.control("actor").unwrap().options;
    assert_eq!(actors[0].0, "a\"<b>");
}

/// The text between the tags. Attributes have no `<` and no `>`.
fn text_of_html(html: &str) -> String {
    let tags = html.split('<').filter_map(|tag| tag.split_once('>'));
    tags.map(|(_, text)| text).collect()
}

#[test]
fn hostile_texts_of_a_request_are_escaped() {
    let bad = "<script>alert(1)</script>\"'><img src=x onerror=y>\u{202e}";
    let options = json!([{"id": bad, "name": bad, "description": bad,
        "url": "javascript:alert(1)", "image_url": "https://a@evil.example/x", "variants": [{"id": "v", "name": bad, "short_variant_name": bad}]}]);
    let mut messages: Vec<Value> = ["radio", "checkbox", "confirmation", "products"]
        .iter()
        .map(|kind| decision(kind, &options))
        .collect();
    for message in &mut messages {
        message["request_decision"]["title"] = bad.into();
        message["request_decision"]["description"] = bad.into();
        message["request_decision"]["id"] = bad.into();
    }
    messages.push(json!({"$schema": DATA, "request_data": {"id": "f", "description": bad, "fillButtonLabel": bad,
        "form": {"fields": [{"id": bad, "label": bad, "description": bad, "type": "select", "options": [bad],
            "autocomplete": bad}]}}}));
    let mut hostile_quote = quote();
    hostile_quote["quote"]["description"] = bad.into();
    hostile_quote["quote"]["merchant_id"] = bad.into();
    hostile_quote["quote"]["payment_options"][0]["currency"] = bad.into();
    messages.push(hostile_quote);
    messages.push(json!({"$schema": "https://example.com/x", "x": {"title": bad}}));
    for message in &messages {
        let mut html = capability_card(&message.to_string()).unwrap().into_string();
        if message["x"].is_null() {
            html.push_str(&asking(message).1.html().into_string());
        }
        for tag in [
            "<script",
            "<img",
            "href=\"javascript",
            "data-src=\"javascript",
        ] {
            assert!(!html.contains(tag), "{tag}: {html}");
        }
        // The values of controls are sent back as they are.
        assert!(!text_of_html(&html).contains('\u{202e}'), "{html}");
        assert!(!html.contains("style=") && !html.contains("onclick="));
    }
}

#[test]
fn a_capability_message_is_a_card_with_its_json_behind() {
    let data = json!({"$schema": DATA, "data": {"request_data_id": "f", "fields": [{"id": "c", "label": "City", "value": "Bonn"}]}});
    let decline = json!({"$schema": interop::aitp::REQUESTS, "decline": {"request_id": "f", "reason": "Too late"}});
    let unknown = json!({"$schema": "https://example.com/poll.json", "poll": {"title": "Lunch"}});
    for (message, parts) in [
        (&data, ["City", "Bonn"]),
        (&decline, ["Declines a request", "Too late"]),
        (&unknown, ["does not know", "Lunch"]),
    ] {
        let html = capability_card(&message.to_string()).unwrap().into_string();
        for part in parts {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
    assert!(capability_card("Hello {\"$schema\": 1}").is_none());
}

fn with_requests(desk: &Desk) -> Conversation {
    let mut transcript = Transcript::default();
    transcript.seq = desk.seq;
    let mut conversation = Conversation::of("t", &transcript);
    conversation.note_requests(desk.requests());
    conversation
}

#[test]
fn a_new_request_is_added_and_a_changed_one_is_replaced() {
    let (mut desk, first) = asking(&decision("radio", &json!([{"id": "a"}])));
    let mut conversation = with_requests(&desk);
    assert!(conversation.html().into_string().contains(&first.element()));
    let mut patches = Vec::new();
    conversation.update_requests(desk.requests(), &mut patches);
    assert_eq!(patches, [], "nothing has changed");
    desk.record(
        "again",
        Role::Assistant,
        &decision("radio", &json!([{"id": "b"}])),
    );
    conversation.update_requests(desk.requests(), &mut patches);
    let puts: Vec<&str> = patches
        .iter()
        .filter_map(|patch| match patch {
            Patch::Put { id, .. } => Some(id.as_str()),
            Patch::Before { .. }
            | Patch::Append { .. }
            | Patch::Text { .. }
            | Patch::Drop { .. }
            | Patch::Mark { .. }
            | Patch::Status { .. }
            | Patch::Reload => None,
        })
        .collect();
    assert_eq!(puts, [first.element().as_str(), ids::WAITING]);
    let is_added = |patch: &Patch| matches!(patch, Patch::Before { id, html } if id == ids::END_OF_LOG && html.contains("f.option"));
    assert!(patches.iter().any(is_added));
    let is_told =
        |patch: &Patch| matches!(patch, Patch::Status { words } if words.contains("Which?"));
    assert!(patches.iter().any(is_told));
}

#[test]
fn requests_that_wait_are_listed_as_links() {
    let (_, request) = asking(&decision("radio", &json!([{"id": "a"}])));
    let html = waiting(std::slice::from_ref(&request)).into_string();
    assert!(html.contains(&format!("href=\"#{}\"", request.element())));
    assert!(waiting(&[]).into_string().ends_with("</nav>"));
}
