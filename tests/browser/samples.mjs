// Agents and texts that several files use.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An answer with every kind of Markdown block. */
export const MARKDOWN = `# A report on looms

Some *emphasis*, **strong words**, ~~struck ones~~ and \`code\`; a [link](https://example.org/looms), a bare
address <https://example.org/> and <b>markup</b> that is only text.

## Kinds

- hand looms
  - with a rigid heddle
  - with a frame

  A second paragraph of the item.
- power looms

1. warp
2. weft

### Figures

| loom | year | price |
|:-----|:----:|------:|
| Jacquard | 1804 | 1,200 |
| Northrop | 1895 | 150 |

- [x] threaded
- [ ] tied

> A quotation
> of two lines.

\`\`\`rust
/// Doubles a number.
fn double(n: u64) -> u64 {
    let text = "a string"; // a comment
    n * 2
}
\`\`\`

![A loom](https://pictures.example.org/loom.png)

---

That is all.`;

/** Fixed answers for a scripted model, in a file of their own. */
export class Scripts {
  static async inFolder() {
    const scripts = new Scripts();
    scripts.folder = await mkdtemp(join(tmpdir(), "loomline-scripts-"));
    return scripts;
  }

  /** The table of a model that answers with these turns. */
  async model(name, turns, delay) {
    const file = join(this.folder, `${name}.json`);
    const timed = turns.map((turn) => ({ delay_ms: delay ?? 0, ...turn }));
    await writeFile(file, JSON.stringify({ turns: timed, repeat_last: true }));
    return `[models.${name}]\nprovider = "scripted"\nscript = ${JSON.stringify(file)}\n`;
  }

  async remove() {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** One agent that calls freely, one that needs approvals, and one that has another one compute. */
export const TEAM = `
default_agent = "demo"
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
tools = ["compute"]
[agents.careful]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[agents.lead]
model = "m"
handoffs = ["demo"]
[[agents.lead.subagents]]
agent = "helper"
name = "delegate"
description = "Does something."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
[agents.helper]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[agents.client]
model = "m"
[[agents.client.external]]
name = "get_weather"
description = "The weather of a city."
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
[agents.surveyor]
model = "m"
[[agents.surveyor.external]]
name = "measure"
description = "Measures the weather of a city."
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
result = { type = "object", properties = { degrees = { type = "number" }, sky = { type = "string", enum = ["clear", "cloudy"] } }, required = ["degrees", "sky"] }
`;

/** The prompt with which the agent \`lead\` has its sub-agent do something. */
export const delegate = (task) => `delegate ${JSON.stringify({ task })}`;
