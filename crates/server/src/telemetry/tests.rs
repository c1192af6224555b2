use super::*;

fn env<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let found = variables.iter().find(|(key, _)| *key == name)?;
        Some(found.1.to_owned())
    }
}

fn from_env(variables: &[(&str, &str)]) -> Result<Option<TelemetryConfig>, TelemetryError> {
    TelemetryConfig::from_env(&env(variables))
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named() {
    assert!(from_env(&[]).unwrap().is_none());
    assert!(
        from_env(&[("OTEL_SERVICE_NAME", "mine")])
            .unwrap()
            .is_none()
    );
    assert!(
        from_env(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")])
            .unwrap()
            .is_none()
    );
    let disabled = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    assert!(from_env(&disabled).unwrap().is_none());
}

#[test]
fn the_standard_variables_say_where_spans_go() {
    let config = from_env(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ("OTEL_SERVICE_NAME", "mine"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
    ]);
    let config = config.unwrap().unwrap();
    assert_eq!(config.endpoint, "http://localhost:4318");
    assert_eq!(config.service_name, "mine");
    assert!((config.sample_ratio - 0.5).abs() < f64::EPSILON);
    assert!(!config.capture_content);
}

#[test]
fn content_is_captured_only_if_a_variable_says_so() {
    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
    let captures = |value| {
        let variable = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value);
        from_env(&[collector, variable])
            .unwrap()
            .unwrap()
            .capture_content
    };
    assert!(captures("true"));
    assert!(!captures("false"));
    assert!(!captures(""));
}

#[test]
fn the_path_of_traces_is_added_once() {
    for endpoint in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
        let config = TelemetryConfig::new(endpoint);
        assert_eq!(config.traces_endpoint().unwrap(), "http://c:4318/v1/traces");
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    for endpoint in [
        "localhost:4318",
        "grpc://c:4317",
        "http://c/?a=b",
        "",
        "http://",
    ] {
        let error = install(&TelemetryConfig::new(endpoint)).unwrap_err();
        assert!(
            matches!(error, TelemetryError::Endpoint { .. }),
            "{endpoint}"
        );
    }
}

#[test]
fn a_ratio_that_is_none_is_refused() {
    for ratio in [-0.1, 1.5, f64::NAN] {
        let config = TelemetryConfig {
            sample_ratio: ratio,
            ..TelemetryConfig::new("http://localhost:4318")
        };
        let error = install(&config).unwrap_err();
        assert!(matches!(error, TelemetryError::SampleRatio { .. }));
    }
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ("OTEL_TRACES_SAMPLER_ARG", "half"),
    ];
    let error = from_env(&variables).unwrap_err();
    assert!(error.to_string().contains("\"half\""), "{error}");
}

#[cfg(feature = "otel")]
#[test]
fn a_header_that_cant_be_sent_is_refused_and_not_told() {
    let mut config = TelemetryConfig::new("http://localhost:4318");
    let value = SecretString::from("secret\nvalue");
    config.headers.insert("x-key".to_owned(), value);
    let error = install(&config).unwrap_err().to_string();
    assert!(error.contains("\"x-key\""), "{error}");
    assert!(!error.contains("secret"), "{error}");
    assert!(!format!("{config:?}").contains("secret"));
}
