/** `orch serve`, the commands for its store, keys and clock on its host, and `orch quickstart`. */
import { resolve } from 'node:path';
import type { RotatedSecretsKey, ServeClock, ServeFlags } from '../../programs/serve.js';
import type { RecoveredAdmin, Restored, RestorePlan } from '../../programs/store.js';
import { SERVE_SETTINGS } from '../../settings/serve.js';
import { defaultOf, flagOf, flatName, helpOf, type Setting, type SettingTable } from '../../settings/setting.js';
import { argument, defineCommand } from '../define-command.js';
import { count, formatBytes, formatDuration } from '../format.js';
import { heldLines } from '../held-lines.js';
import { flag, negativeFlag, type Option, text } from '../options.js';
import { fields, type Line, lines, proseOf, stack, styled } from '../outcome.js';
import { readPublicKey } from '../read-public-key.js';
import { readInlineOrFile } from '../text-files.js';

/** `orch serve`. */
export const serve = defineCommand({
  examples: [
    'orch serve',
    'orch serve --config /etc/orch/orchestrator.yaml',
    'orch serve --data-dir ./orch --api-port 0',
  ],
  detail: [
    'A flag overrides its variable (ORCH_SERVE_AGENT_PORT for --agent-port), and a variable overrides the configuration',
    'file. SIGTERM and SIGINT stop the orchestrator within 10 seconds. SIGHUP reads the configuration again.',
  ],
  access: 'local',
  ownsSignals: true,
  options: {
    config: text('FILE', 'configuration file [/etc/orch/orchestrator.yaml if it exists]', { completes: 'file' }),
    config_schema: flag('print the JSON Schema of the configuration file and end'),
    ready_file: text('FILE', 'write the addresses there, as JSON, once connections are accepted', {
      completes: 'file',
    }),
    new_epoch: flag('begin a new epoch, after a data directory was copied back by hand'),
    new_store: flag('begin with an empty store if the store of the present keys is lost'),
    new_identity: flag('create a new identity key if the old one is lost; agents must be repinned'),
    ...settingOptions(SERVE_SETTINGS),
  },
  run: async ({ programs }, given) => ({ exitStatus: await programs.serve(flagsOf(SERVE_SETTINGS, given)) }),
});

/** Options that choose the orchestrator of this host. */
export const storeOptions = {
  config: text('FILE', 'configuration file [/etc/orch/orchestrator.yaml if it exists]', { completes: 'file' }),
  data_dir: text('DIR', 'data directory of the orchestrator', { completes: 'file' }),
} as const;

/** Options that choose the orchestrator of this host and its store. */
const placeOptions = {
  ...storeOptions,
  store: text('URL', 'URL of the PostgreSQL database that holds the store [the setting store]'),
  store_password_file: text('FILE', 'file with the password of that database', { completes: 'file' }),
} as const;

/** `orch serve rotate-secrets-key`. */
export const rotateSecretsKey = defineCommand({
  examples: ['orch serve rotate-secrets-key', 'orch serve rotate-secrets-key --data-dir ./orch'],
  detail: [
    'Run it beside the orchestrator, on its host and as its user. It re-encrypts all values, and keeps the old key as',
    'secrets.key.1 (or .2 …) in the data directory: restores of older backups need it, so delete it only with them.',
    'The next start completes a rotation that was cut off. The old key with an older backup still reveals the old',
    'values, so change secrets whose key leaked.',
  ],
  access: 'local',
  options: {
    config: text('FILE', 'configuration file [/etc/orch/orchestrator.yaml if it exists]', { completes: 'file' }),
    data_dir: text('DIR', 'data directory of the orchestrator', { completes: 'file' }),
  },
  run: async ({ programs }, given) => {
    const flags = Object.entries(given).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const rotated = await programs.rotateSecretsKey(Object.fromEntries(flags));
    return {
      body: rotated,
      names: [rotated.key_id],
      view: lines(
        `The key of the secrets was changed; ${reencrypted(rotated)} re-encrypted.`,
        ...(rotated.kept === null
          ? []
          : [`The old key is kept as ${rotated.kept}: restores of older backups need it.`]),
      ),
    };
  },
});

/** `orch serve accept-clock`. */
export const acceptClock = defineCommand({
  examples: ['orch serve accept-clock', 'orch serve accept-clock --data-dir /var/lib/orch --yes'],
  detail: [
    'Run it beside the orchestrator, on its host and as its user. After the clock of the host has jumped ahead by',
    'more than a week, the orchestrator stops deleting old data, until the clock is back or this command confirms the',
    'new time, as after a long shutdown. Data past its retention by the new time is then deleted. The command also',
    'ends the warning about events that are ahead of the clock.',
  ],
  access: 'local',
  consent: true,
  options: storeOptions,
  run: async ({ programs, prompt, present }, which) => {
    const flags = storeFlags(which);
    const found = await programs.clock(flags, false);
    if (!found.waits && found.ahead_ms === 0) {
      return { body: { ...found, accepted: false }, names: [found.now], view: lines(nothingText(found)) };
    }
    await present(lines(...foundLines(found)));
    await prompt.consent(`Is ${found.now} the right time?`);
    const accepted = await programs.clock(flags, true);
    return {
      body: { ...accepted, accepted: true },
      names: [accepted.now],
      view: lines('The clock is taken as right from now on.'),
    };
  },
});

/** `orch serve backup`. */
export const backUpStore = defineCommand({
  examples: ['orch serve backup /mnt/backup/orch.db', 'orch serve backup "/mnt/backup/orch-$(date +%F).db" -o json'],
  detail: [
    'Run it on the host of the orchestrator as root or as its user, while the orchestrator runs or is stopped.',
    'Without --data-dir it is the installed service. The file gets its name once it is complete, checked and in the',
    'audit log. It contains no keys and no recordings. A restore needs the keys: copy them once, to another place,',
    'because backup and keys together reveal all secrets.',
  ],
  access: 'local',
  args: { file: argument('FILE', 'the new file', 'file') },
  options: { force: flag('replace FILE'), ...placeOptions },
  run: async ({ programs }, { file, force, ...which }) => {
    const made = await programs.store.backup({ flags: storeFlags(which), file: resolve(file), force });
    const view = stack(
      lines(`Backed up to ${made.file}, with everything up to event ${made.last_seq} of the audit log.`),
      fields(['Size', formatBytes(made.bytes)], ['SHA-256', made.sha256], ['Schema', String(made.schema)]),
      proseOf(about(made.keys)),
    );
    return { body: made, names: [made.file], view };
  },
});

/** `orch serve restore`. */
export const restoreStore = defineCommand({
  examples: ['orch serve restore /mnt/backup/orch.db', 'orch serve restore orch.db --data-dir /var/lib/orch --yes'],
  detail: [
    'Run it while the orchestrator is stopped, on its host, as root or as its user. Without --data-dir it is the',
    'installed service. On a new host, first put the keys into the data directory. The command checks that FILE is',
    'complete, is not from a newer orch, and matches these keys. It keeps the present store beside the restored one.',
    'A new epoch begins, so that agents accept applies of the older store. Sessions end, open enrolment tokens are',
    'revoked, and applies in progress are not sent again. Pending notifications are sent, some perhaps twice.',
    'Recordings newer than FILE are listed again.',
  ],
  access: 'local',
  consent: true,
  args: { file: argument('FILE', 'a backup', 'file') },
  options: {
    new_identity: flag('continue without the identity.key of the backup; every agent must be repinned'),
    ...placeOptions,
  },
  run: async ({ programs, prompt, present }, { file, new_identity: newIdentity, ...which }) => {
    const confirm = async (plan: RestorePlan) => {
      await present(proseOf(planLines(plan)));
      await prompt.consent(`Put ${plan.file} in the place of the store in ${plan.store}?`);
    };
    const request = { flags: storeFlags(which), file: resolve(file), newIdentity, confirm };
    const restored = await programs.store.restore(request);
    return { body: restored, names: [restored.data_dir], view: proseOf(doneLines(restored)) };
  },
});

/** `orch serve recover-admin`. */
export const recoverAdmin = defineCommand({
  examples: ['orch serve recover-admin @ada.pub', 'orch serve recover-admin 3b6a27bc…29 --username ada'],
  detail: [
    'Run it on the host of the stopped orchestrator, as root or as its user. It adds the key as an admin, or makes',
    'the operator of that key an admin. The audit log records it, and all channels get a notification.',
  ],
  access: 'local',
  consent: true,
  args: {
    key: argument('PUBLIC_KEY', '64 hex digits, an OpenSSH public key line, or @FILE with either'),
  },
  options: {
    username: text('NAME', 'username of the operator [the earlier name of the key, else admin]'),
    ...placeOptions,
  },
  run: async ({ programs, prompt, readInput }, { key, username, ...which }) => {
    const publicKey = readPublicKey(
      await readInlineOrFile(key, readInput),
      key.startsWith('@') ? key.slice(1) : 'PUBLIC_KEY',
    );
    const confirm = (found: RecoveredAdmin) => prompt.consent(question(found));
    const found = await programs.store.recoverAdmin({ flags: storeFlags(which), publicKey, username, confirm });
    const done = found.change === 'none' ? 'is an admin already; nothing was changed' : 'is an admin now';
    return {
      body: found,
      names: [found.operator_id],
      view: lines(`${found.username} ${done}. Start orch serve, then log in with that key: orch login`),
    };
  },
});

/** Returns an option for each setting: a text that `orch serve` converts and checks, or a switch. */
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

/** Returns the given options by the flat name of their setting; `--no-tls` gives `tls_enabled: false`. */
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

export const storeFlags = (
  given: Readonly<Partial<Record<keyof typeof placeOptions, string | undefined>>>,
): ServeFlags =>
  Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined));

function reencrypted({ secrets, outputs, channels }: RotatedSecretsKey): string {
  const others = [
    ...(outputs === 0 ? [] : [`${count(outputs, 'output')} of scripts`]),
    ...(channels === 0 ? [] : [count(channels, 'channel')]),
  ];
  const last = others.at(-1);
  const all = [count(secrets, 'secret'), ...others.slice(0, -1)].join(', ');
  return last === undefined ? all : `${all} and ${last}`;
}

const nothingText = ({ now }: ServeClock): string => `The clock says ${now}, and there is nothing to accept.`;

function foundLines({ now, doubt_ms, waits, ahead_ms }: ServeClock): readonly Line[] {
  return [
    `The clock of the orchestrator says ${now}.`,
    ...(waits
      ? [
          `It is ${formatDuration(doubt_ms / 1000)} ahead of the time that the orchestrator has seen pass; nothing is deleted for its age.`,
        ]
      : []),
    ...(ahead_ms > 0 ? [`The audit log holds events from up to ${formatDuration(ahead_ms / 1000)} ahead of it.`] : []),
  ];
}

const MEANING: Readonly<Record<string, string>> = {
  'identity.key': 'the agents trust it; without it, each has to be repinned',
  'audit.key': 'signs the audit log; without it, checkpoints kept elsewhere cannot be checked',
  'secrets.key': 'without it, the secrets in the backup cannot be read',
  'api.key': 'clients have pinned it; without it, each has to pin another one',
};

function about(keys: readonly string[]): readonly Line[] {
  if (keys.length === 0) return [];
  const named = keys.map((path) => `  ${path}: ${MEANING[path.slice(path.lastIndexOf('/') + 1)] ?? 'a key'}`);
  return [
    'The backup does not contain these keys, because with both all secrets can be read. Keep them in another place:',
    ...named,
  ];
}

function planLines({ made_at, last_seq, last_at, ...plan }: RestorePlan): readonly Line[] {
  const made = made_at === null ? 'a store that was copied by hand' : `a backup of ${made_at}`;
  return [
    `${plan.file}: ${made}, up to event ${last_seq} of the audit log${last_at === null ? '' : ` of ${last_at}`}.`,
    ...lossLines(plan, last_seq),
    ...backLines(plan),
  ];
}

function lossLines(plan: Omit<RestorePlan, 'made_at' | 'last_seq' | 'last_at'>, seq: number): readonly Line[] {
  if (plan.present === 'none') return [`There is no store in ${plan.store} yet.`];
  if (plan.present === 'unreadable') return [`The store in ${plan.store} is damaged.`];
  const newer = (plan.present_seq ?? 0) - seq;
  const at = plan.present_at === null ? '' : ` of ${plan.present_at}`;
  const end = `The store in ${plan.store} goes up to event ${plan.present_seq}${at}`;
  return [
    newer > 0 ? [`${end}: `, styled('warn', `${count(newer, 'event')} and what they did will be gone.`)] : `${end}.`,
  ];
}

/** Lists operators and agents that the restore makes active again. */
function backLines({
  operators_back,
  agents_back,
}: Pick<RestorePlan, 'operators_back' | 'agents_back'>): readonly Line[] {
  const back: Line[] = [];
  if (operators_back.length > 0) back.push(styled('warn', `May log in again: ${someOf(operators_back)}.`));
  if (agents_back.length > 0) back.push(styled('warn', `Approved again: ${someOf(agents_back)}.`));
  return back;
}

/** Maximum number of listed names; JSON has them all. */
const SHOWN = 10;

const someOf = (names: readonly string[]): string =>
  names.length <= SHOWN ? names.join(', ') : `${names.slice(0, SHOWN).join(', ')} and ${names.length - SHOWN} more`;

function doneLines(restored: Restored): readonly Line[] {
  const { epoch, sessions, tokens, operations, deliveries, recordings, secrets_key } = restored;
  return [
    `Restored, as epoch ${epoch}. Start orch serve; then: orch audit verify`,
    ...keptLines(restored),
    ...(secrets_key === null
      ? []
      : [`The secrets are opened with ${secrets_key}; the next start encrypts them with the key of now.`]),
    ...(sessions === 0 ? [] : [`${count(sessions, 'login')} ended.`]),
    ...(tokens === 0 ? [] : [`${count(tokens, 'enrolment token')} revoked.`]),
    ...(operations === 0
      ? []
      : [`${count(operations, 'apply', 'applies')} under way: the agents are asked for the outcome.`]),
    ...(deliveries === 0
      ? []
      : [
          `${count(deliveries, 'delivery', 'deliveries')} of notifications waiting: sent on, perhaps for the second time.`,
        ]),
    ...(recordings === 0
      ? []
      : [
          `${count(recordings, 'recording')} of terminals that this store does not know: orch serve finds them, see orch term list --all.`,
        ]),
    ...backLines(restored),
    ...heldLines(restored),
  ];
}

function keptLines({ kept, store, data_dir }: Restored): readonly Line[] {
  if (kept === null) return [];
  if (store === data_dir) return [`The former store is kept as ${kept}. Delete it when it is not needed.`];
  return [
    `The former store is kept in the same database, as schema ${kept}. Delete it when it is not needed, with SQL:`,
    `  drop schema ${kept} cascade;`,
  ];
}

const question = ({ username, public_key, change, former_role }: RecoveredAdmin): string =>
  change === 'added'
    ? `Add ${username} with the key ${public_key} as an admin?`
    : `Make ${username}, who is ${former_role}, an admin?`;

/** `orch quickstart`: a guided tour of a complete system. */
export const quickstart = defineCommand({
  examples: ['orch quickstart', 'orch quickstart --keep'],
  detail: [
    'Starts an orchestrator and an agent on loopback ports with everything below one new directory, approves the agent,',
    'applies an example module, changes a file behind its back, shows the drift, applies again, and stops.',
    'Touches nothing else of the machine and needs no root.',
  ],
  access: 'local',
  ownsSignals: true,
  options: {
    keep: flag('keep running afterwards, until Ctrl-C'),
    dir: text('DIR', 'new directory for all its data [a temporary one]', { completes: 'file' }),
  },
  run: async ({ programs, color }, { keep, dir }) => ({ exitStatus: await programs.quickstart({ keep, dir, color }) }),
});
