/** `orch serve`. */
import { SERVE_SETTINGS } from '../../settings/serve.js';
import { defaultOf, flagOf, flatName, helpOf, type Setting, type SettingTable } from '../../settings/setting.js';
import { defineCommand } from '../define-command.js';
import { flag, negativeFlag, type Option, text } from '../option.js';
import type { ServeFlags } from '../programs.js';

export const command = defineCommand({
  examples: [
    'orch serve',
    'orch serve --config /etc/orch/orchestrator.yaml',
    'orch serve --data-dir ./orch --api-port 0',
  ],
  detail: [
    'A flag stands above its variable (ORCH_SERVE_AGENT_PORT for --agent-port), and that above the configuration file.',
    'Stops within 10 seconds of SIGTERM or SIGINT; SIGHUP reads the configuration again.',
  ],
  access: 'local',
  ownsSignals: true,
  options: {
    config: text('FILE', 'configuration file; /etc/orch/orchestrator.yaml when it is there', { completes: 'file' }),
    config_schema: flag('print the JSON Schema of the configuration file and end'),
    ready_file: text('FILE', 'write the addresses there, as JSON, once connections are accepted', {
      completes: 'file',
    }),
    new_epoch: flag('begin a new epoch: after a data directory was copied back by hand'),
    new_store: flag('begin with an empty store beside the keys of one that is lost'),
    new_identity: flag('take another identity key for a lost one; agents have to be repinned'),
    ...settingOptions(SERVE_SETTINGS),
  },
  run: async ({ programs }, given) => ({ exitStatus: await programs.serve(flagsOf(SERVE_SETTINGS, given)) }),
});

/** The options of a table of settings: each takes text that the program converts and checks, or is a switch. */
export function settingOptions(table: SettingTable): Readonly<Record<string, Option<string | boolean | undefined>>> {
  const options = Object.entries(table).map(([key, setting]) => [flagOf(key, setting).name, settingOption(setting)]);
  return Object.fromEntries(options);
}

function settingOption(setting: Setting): Option<string | boolean | undefined> {
  const summary = helpOf(setting);
  if (setting.off !== null) return negativeFlag(summary);
  if (typeof defaultOf(setting) === 'boolean') return flag(summary);
  return text(setting.placeholder, summary, setting.isPath ? { completes: 'file' } : {});
}

/** Returns what was given by the flat name of its setting; `--no-tls` is `tls_enabled: false`. */
function flagsOf(table: SettingTable, given: Readonly<Record<string, string | boolean | undefined>>): ServeFlags {
  const negated = new Map(
    Object.entries(table).flatMap(([key, setting]) =>
      setting.off === null ? [] : [[flagOf(key, setting).name, flatName(key)]],
    ),
  );
  const flags = Object.entries(given).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const positive = negated.get(name);
    return [positive === undefined ? [name, value] : [positive, false]];
  });
  return Object.fromEntries(flags);
}
