//! The charts of the documentation, drawn from measurements.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

/// The folder of the measurements.
const MEASUREMENTS: &str = "docs/measurements";
/// The folder of the charts.
const PICTURES: &str = "docs/pictures";
/// Width of a chart, in pixels.
const WIDTH: f64 = 720.0;
/// Width of the labels, in pixels.
const LABELS: f64 = 250.0;
/// Width of the values behind the bars, in pixels.
const VALUES: f64 = 90.0;
/// Height of a row, in pixels.
const ROW: f64 = 30.0;
/// Height of the title, in pixels.
const TITLE: f64 = 44.0;
/// Height of the line that names the machine, in pixels.
const FOOT: f64 = 34.0;

/// A measurement of several programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measurement {
    title: String,
    unit: String,
    scale: Scale,
    machine: String,
    rows: Vec<Row>,
}

/// The scale of the bars.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scale {
    Linear,
    Logarithmic,
}

/// One program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    label: String,
    value: f64,
    #[serde(default)]
    is_own: bool,
}

/// Draws all charts, or checks that they are drawn.
pub(crate) fn charts(root: &Path, only_check: bool) -> Result<String> {
    let mut files: Vec<_> = std::fs::read_dir(root.join(MEASUREMENTS))?
        .map(|entry| entry.map(|it| it.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut report = String::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(&file)?;
        let measurement: Measurement =
            serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let chart = format!("{PICTURES}/chart-{name}.svg");
        let svg = measurement.svg();
        if !only_check {
            std::fs::write(root.join(&chart), svg)?;
            writeln!(report, "wrote {chart}")?;
        } else if std::fs::read_to_string(root.join(&chart)).ok() != Some(svg) {
            bail!(
                "{chart} is not the chart of {MEASUREMENTS}/{name}.json; run `cargo xtask charts`"
            );
        }
    }
    if only_check {
        report.push_str("charts: all of them are as they should be\n");
    }
    Ok(report)
}

impl Measurement {
    fn svg(&self) -> String {
        let n_rows = self.rows.iter().fold(0.0, |n, _| n + 1.0);
        let height = TITLE + n_rows * ROW + FOOT;
        let title = escaped(&self.title);
        let values: Vec<String> = self
            .rows
            .iter()
            .map(|row| format!("{}: {}", row.label, self.value(row)))
            .collect();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"14\">\n\
             <title>{title}</title>\n<desc>{}</desc>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"16\" y=\"27\" font-weight=\"600\">{title}</text>\n",
            escaped(&values.join("; "))
        );
        let mut y = TITLE;
        for row in &self.rows {
            self.row(row, y, &mut svg);
            y += ROW;
        }
        let scale = match self.scale {
            Scale::Linear => "shorter is better",
            Scale::Logarithmic => "shorter is better, logarithmic scale",
        };
        // Writing to a string can't fail.
        let _ = writeln!(
            svg,
            "<text x=\"16\" y=\"{}\" font-size=\"12\" fill=\"#555\">{}; {scale}</text>\n</svg>",
            y + 20.0,
            escaped(&self.machine)
        );
        svg
    }

    fn row(&self, row: &Row, y: f64, svg: &mut String) {
        let (colour, weight) = if row.is_own {
            ("#2f5bd7", "600")
        } else {
            ("#9aa3b2", "400")
        };
        let length = self.length(row.value);
        let (text, bar) = (y + 19.0, y + 5.0);
        let _ = writeln!(
            svg,
            "<text x=\"16\" y=\"{text}\" font-weight=\"{weight}\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{bar}\" width=\"{length:.1}\" height=\"20\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{text}\">{}</text>",
            escaped(&row.label),
            LABELS + length + 8.0,
            escaped(&self.value(row))
        );
    }

    fn value(&self, row: &Row) -> String {
        format!("{} {}", row.value, self.unit)
    }

    /// Length of a bar, in pixels.
    fn length(&self, value: f64) -> f64 {
        let longest = self.rows.iter().map(|row| row.value).fold(1.0, f64::max);
        let share = match self.scale {
            Scale::Linear => value / longest,
            Scale::Logarithmic => value.max(1.0).ln() / longest.ln(),
        };
        (share * (WIDTH - LABELS - VALUES)).max(2.0)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(scale: &str) -> Measurement {
        let text = format!(
            r#"{{"title": "a < b", "unit": "ms", "scale": "{scale}", "machine": "m",
                "rows": [{{"label": "own", "value": 10, "is_own": true}}, {{"label": "other", "value": 100}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let linear = measurement("linear");
        assert!((linear.length(10.0) * 10.0 - linear.length(100.0)).abs() < 0.1);
        let logarithmic = measurement("logarithmic");
        assert!((logarithmic.length(10.0) * 2.0 - logarithmic.length(100.0)).abs() < 0.1);
    }

    #[test]
    fn a_chart_names_values_and_machine() {
        let svg = measurement("linear").svg();
        for part in [
            "<title>a &lt; b</title>",
            "own: 10 ms; other: 100 ms",
            ">m; shorter is better<",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }
}
