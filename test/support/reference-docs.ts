/** The reference pages under docs/ that are made from the definitions in the code. */

import { flatName, SETTING_KEYS, SETTINGS } from '../../daemon/config/settings.js';
import { AGENT_SETTINGS } from '../../src/agent/settings.js';
import { helpAll } from '../../src/cli/help/help-all.js';
import { FAULTS } from '../../src/contract/faults.js';

interface SettingSchema {
  readonly description?: string;
  readonly default?: unknown;
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** docs/configuration.md */
export function configurationPage(): string {
  const rows = SETTING_KEYS.map((key) => {
    const { description = '', default: standard } = SETTINGS[key].schema as SettingSchema;
    const flat = flatName(key);
    const flag =
      typeof standard === 'boolean' && standard ? `--no-${shortFlag(flat)}` : `--${flat.replaceAll('_', '-')}`;
    const value = String(standard) === '' ? '' : `\`${String(standard)}\``;
    return `| \`${key}\` | \`${flag}\` | ${value} | ${cell(description)} | ${SETTINGS[key].live ? 'SIGHUP' : 'restart'} |`;
  });
  return `# Configuration of \`orch serve\`

Each setting is a flag, an environment variable and a key of a YAML file, in that order of precedence. The variable of a key is
\`ORCH_SERVE_\` and its name in capitals with \`_\` for \`.\`, such as \`ORCH_SERVE_LOG_LEVEL\`. The file is the one of \`--config\`, else
\`/etc/orch/orchestrator.yaml\` when it is there; a dot in a key is a mapping in the file, and a list, elsewhere words between commas, may be
one there:

\`\`\`yaml
api_host: 0.0.0.0
log:
  level: debug
\`\`\`

Unknown keys and bad values stop the start with file, line and reason. \`orch serve --config-schema\` prints a JSON Schema for
editors. On SIGHUP the file is read again; the settings marked so take effect at once.

| key | flag | default | meaning | takes effect on |
|---|---|---|---|---|
${rows.join('\n')}

# Configuration of \`orch agent\`

The file is the one of \`--config\` or \`ORCH_AGENT_CONFIG\`, else \`/etc/orch/agent.yaml\` for root and \`orch/agent.yaml\` in the configuration
directory for others, when it is there. It is read again whenever it changes, without a restart; a file that is not valid stops
the start, and later is logged and changes nothing. \`orch agent config-schema\` prints a JSON Schema for editors.

| key | default | meaning |
|---|---|---|
${agentRows().join('\n')}
`;
}

const agentRows = (): readonly string[] =>
  Object.entries(AGENT_SETTINGS).map(([key, { schema }]) => {
    const { description = '', default: standard } = schema as SettingSchema;
    return `| \`${key}\` | \`${String(standard)}\` | ${cell(description)} |`;
  });

/** Settings that are on by default have a flag that turns them off. */
const shortFlag = (flat: string): string => flat.replace(/_enabled$/, '').replaceAll('_', '-');

/** docs/errors.md */
export function errorsPage(): string {
  const api = Object.entries(FAULTS).filter(([code, { status }]) => status !== 500 || code === 'internal');
  const local = Object.entries(FAULTS).filter(([code, { status }]) => status === 500 && code !== 'internal');
  const row = ([code, { status, title }]: (typeof api)[number]) => `| \`${code}\` | ${status} | ${cell(title)} |`;
  return `# Error codes

Every failure has a stable code. Over HTTP it is the \`code\` of an \`application/problem+json\` document (RFC 9457) whose \`detail\`
says what happened and what to do.

| code | status | meaning |
|---|---|---|
${api.map(row).join('\n')}

These come from the programs themselves, or stand in the result of one resource:

| code | meaning |
|---|---|
${local.map(([code, { title }]) => `| \`${code}\` | ${cell(title)} |`).join('\n')}
`;
}

/** docs/cli.md */
export async function cliPage(): Promise<string> {
  return `# The \`orch\` command

Made from the same definitions as \`orch help --all\`.

\`\`\`
${(await helpAll()).trimEnd()}
\`\`\`
`;
}
