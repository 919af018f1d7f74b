/** The reference pages under docs/ that are made from the definitions in the code. */

import { FAULTS } from '../../src/contract/faults.js';
import { AGENT_SETTINGS } from '../../src/settings/agent.js';
import { SERVE_SETTINGS } from '../../src/settings/serve.js';
import { flagOf, meaningOf, type Setting, type SettingTable, shownDefault } from '../../src/settings/setting.js';

const cell = (text: string): string => text.replaceAll('|', '\\|');

interface Tables {
  readonly serve: SettingTable;
  readonly agent: SettingTable;
}

/** docs/configuration.md */
export function configurationPage({ serve, agent }: Tables = { serve: SERVE_SETTINGS, agent: AGENT_SETTINGS }): string {
  const rows = Object.entries(serve).map(([key, setting]) => {
    const effect = setting.live ? 'SIGHUP' : 'restart';
    return `| \`${key}\` | \`${flagOf(key, setting).flag}\` | ${standardCell(setting)} | ${cell(meaningOf(setting))} | ${effect} |`;
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
