/** The reference pages under docs/ that are made from the definitions in the code. */

import { EVENT_SEVERITY, type EventType } from '../../daemon/core/domain-event.js';
import { EXIT_MEANINGS, EXIT_PRECEDENCE, type ExitStatus, exitStatusOfCode } from '../../src/cli/exit-status.js';
import { FAULTS } from '../../src/contract/faults.js';
import { ANSWER_SCHEMAS } from '../../src/contract/openapi-schema.js';
import type { FaultCode } from '../../src/kernel/fault.js';
import { AGENT_SETTINGS } from '../../src/settings/agent.js';
import { SERVE_SETTINGS } from '../../src/settings/serve.js';
import { flagOf, meaningOf, type Setting, type SettingTable, shownDefault } from '../../src/settings/setting.js';
import { MEANINGS } from './error-meanings.js';
import { EVENT_MEANINGS } from './event-meanings.js';
import { COMMAND_JSON, JSON_OF_COMMANDS } from './json-shapes.js';

const cell = (text: string): string => text.replaceAll('|', '\\|');

interface Tables {
  readonly serve: SettingTable;
  readonly agent: SettingTable;
}

/** docs/configuration.md */
export function configurationPage({ serve, agent }: Tables = { serve: SERVE_SETTINGS, agent: AGENT_SETTINGS }): string {
  const rows = Object.entries(serve).map(([key, setting]) => {
    const effect = setting.live ? 'SIGHUP' : 'restart';
    return `| \`${key}\` | ${standardCell(setting)} | ${cell(meaningOf(setting))} | ${effect} |`;
  });
  const switches = Object.entries(serve)
    .filter(([, { off }]) => off !== null)
    .map(([key, setting]) => `\`${flagOf(key, setting).flag}\``);
  return `# Configuration of \`orch serve\`

Each setting is a flag, an environment variable and a key of a YAML file, in that order of precedence.

- **Flag.** \`--\` and the key, with \`-\` in place of \`.\` and \`_\`: \`--log-level\`. ${switches.join(' and ')} turn a setting off.
- **Variable.** \`ORCH_SERVE_\` and the key in capitals, with \`_\` in place of \`.\`: \`ORCH_SERVE_LOG_LEVEL\`.
- **File.** The file of \`--config\`, else \`/etc/orch/orchestrator.yaml\` if it exists. A dot in a key is a mapping in the file.
- **Lists.** Words separated by commas; in the file also a YAML list.

\`\`\`yaml
api_host: 0.0.0.0
log:
  level: debug
\`\`\`

An unknown key or an invalid value stops the start, with file, line and reason. \`orch serve --config-schema\` prints a JSON Schema for editors.
On SIGHUP \`orch serve\` reads the file again. Settings marked SIGHUP then take effect; the others take effect at the next start.

| key | default | meaning | takes effect on |
|---|---|---|---|
${rows.join('\n')}

# Configuration of \`orch agent\`

The file is that of \`--config\` or \`ORCH_AGENT_CONFIG\`, else \`/etc/orch/agent.yaml\` if it exists; without root it is \`orch/agent.yaml\` in
\`$XDG_CONFIG_HOME\` (\`~/.config\`). The agent reads the file again whenever it changes. An invalid file stops the start; later it is logged and ignored.
\`orch agent config-schema\` prints a JSON Schema for editors. [terminal.md](terminal.md) explains \`remote_terminal\`.

| key | default | meaning |
|---|---|---|
${agentRows(agent).join('\n')}
`;
}

const agentRows = (table: SettingTable): readonly string[] =>
  Object.entries(table).map(
    ([key, setting]) => `| \`${key}\` | ${standardCell(setting)} | ${cell(meaningOf(setting))} |`,
  );

function standardCell(setting: Setting): string {
  const standard = shownDefault(setting);
  if (standard === null) return '';
  return setting.computedDefault === null ? `\`${standard}\`` : cell(standard);
}

/** docs/errors.md */
export function errorsPage(): string {
  const api = Object.entries(FAULTS).filter(([code, { status }]) => status !== 500 || code === 'internal');
  const local = Object.entries(FAULTS).filter(([code, { status }]) => status === 500 && code !== 'internal');
  const meaning = (code: string) => {
    const { cause, mend } = MEANINGS[code as FaultCode];
    return `${cell(cause)} | ${cell(mend)}`;
  };
  return `# Error codes

Every failure has a stable code, and a message with the place and the reason. Over HTTP they are \`code\` and \`detail\` of an
\`application/problem+json\` document (RFC 9457). [Troubleshooting](guides/troubleshooting.md) begins with symptoms instead.

| code | status | cause | what to do |
|---|---|---|---|
${api.map(([code, { status }]) => `| \`${code}\` | ${status} | ${meaning(code)} |`).join('\n')}

These come from the programs themselves, or stand in the result of one resource:

| code | cause | what to do |
|---|---|---|
${local.map(([code]) => `| \`${code}\` | ${meaning(code)} |`).join('\n')}
`;
}

/** docs/reference/events.md */
export function eventsPage(): string {
  const types = Object.keys(EVENT_SEVERITY) as readonly EventType[];
  const nouns = [...new Set(types.map(nounOf))];
  const sections = nouns.map((noun) => {
    const rows = types
      .filter((type) => nounOf(type) === noun)
      .map((type) => `| \`${type}\` | ${EVENT_SEVERITY[type]} | ${cell(EVENT_MEANINGS[type])} |`);
    return `## \`${noun}\`\n\n| type | severity | meaning |\n|---|---|---|\n${rows.join('\n')}`;
  });
  return `# Event types

Every change and every notable incident is an event. The audit log keeps the events, in the same transaction as the change:
[\`orch audit list\`](../cli/audit-list.md) shows them, [\`orch audit tail\`](../cli/audit-tail.md) follows them, and \`GET /api/v1/events\` sends them to programs.
Some also raise a [notification](../cli/notifications-list.md).

${sections.join('\n\n')}
`;
}

const nounOf = (type: EventType): string => type.split('.')[0] ?? '';

/** docs/reference/exit-statuses.md */
export function exitStatusesPage(): string {
  const codes = Object.keys(FAULTS) as readonly FaultCode[];
  const codesOf = (status: ExitStatus) =>
    status === exitStatusOfCode('internal')
      ? 'all others'
      : codes
          .filter((code) => exitStatusOfCode(code) === status)
          .map((code) => `\`${code}\``)
          .join(', ');
  const rows = EXIT_MEANINGS.map(([status, meaning]) => `| ${status} | ${cell(meaning)} | ${codesOf(status)} |`);
  return `# Exit statuses

Every command of \`orch\` ends with one of these statuses. \`orch exec\` and the terminals end with the status of the remote program if it has one.
[Error codes](../errors.md) explains the codes.

| status | meaning | error codes |
|---|---|---|
${rows.join('\n')}

## If several apply

${EXIT_PRECEDENCE.join('\n').replace(/\n(?=orch )/, '\n\n')}
`;
}

/** docs/reference/json.md */
export function jsonPage(): string {
  const rows = Object.entries(COMMAND_JSON).map(([path, shape]) => {
    const page = `../cli/${path.replaceAll(' ', '-')}.md`;
    return `| [\`orch ${path}\`](${page}) | ${shape === null ? 'nothing' : cell(shape.words)} |`;
  });
  const sections = Object.entries(JSON_OF_COMMANDS).map(([name, schema]) => {
    const members = membersOf(schema, '').map(({ path, type, note }) => `| \`${path}\` | ${type} | ${cell(note)} |`);
    return `## ${name}\n\n| member | type | meaning |\n|---|---|---|\n${members.join('\n')}`;
  });
  return `# JSON of the commands

What each command prints with \`-o json\`, and as YAML with \`-o yaml\`. Tests run the commands and compare their output with this page.

Most commands print an answer of the API as it is. Such an answer is named after its operation: the page "API reference" of the site and \`orch api GET /openapi.json\`
describe it, with an example. The members of other JSON follow the table; \`[]\` stands for each item of a list. [Compatibility](../compatibility.md) says what may change: members may be added.

- Nothing is printed when a command fails: standard error then has the [problem document](../errors.md). A command that fails on some agents prints their results.
- Commands that follow something, \`orch exec\` on several agents, and lists with \`--watch\` print one document on each line. \`orch audit list --all\` prints a document for each page.
- \`-o jsonpath=EXPR\` selects parts, \`-o name\` prints names alone: \`orch help output\`.

| command | prints |
|---|---|
${rows.join('\n')}

${sections.join('\n\n')}
`;
}

/** Named shapes of answers, which the API reference describes. */
const NAMED = new Map<unknown, string>(Object.entries(ANSWER_SCHEMAS).map(([name, schema]) => [schema, name]));

interface Schema {
  readonly '~kind'?: string;
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

interface Member {
  readonly path: string;
  readonly type: string;
  readonly note: string;
}

/** Returns the members in a schema with their paths. Those of answers of the API have a name instead. */
function membersOf(schema: Schema, path: string): readonly Member[] {
  if (NAMED.has(schema)) return path === '' ? [{ path: '$', type: typeOf(schema), note: '' }] : [];
  const { anyOf = [], items, properties = {}, required = [] } = schema;
  const inner = [...anyOf.map((branch) => membersOf(branch, path)), ...(items ? [membersOf(items, `${path}[]`)] : [])];
  const own = Object.entries(properties).flatMap(([name, member]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const note = noteOf(member);
    const optional = required.includes(name) ? '' : ', may be absent';
    return [{ path: at, type: `${typeOf(member)}${optional}`, note }, ...membersOf(member, at)];
  });
  const all = [...own, ...inner.flat()];
  return path === '' && all.length === 0 ? [{ path: '*', type: 'any', note: noteOf(schema) }] : all;
}

const noteOf = ({ description, anyOf = [] }: Schema): string =>
  description ?? anyOf.map((branch) => branch.description ?? '').find((text) => text !== '') ?? '';

function typeOf(schema: Schema): string {
  const name = NAMED.get(schema);
  if (name !== undefined) return `\`${name}\` of the API`;
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  return schema.type ?? 'any';
}
