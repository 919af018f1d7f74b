/** `orch serve backup`. */
import { resolve } from 'node:path';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { formatBytes } from '../../format.js';
import { flag } from '../../option.js';
import { fields, type Line, lines, linesOf, stack } from '../../view.js';
import { storeFlags, storeOptions } from './store-options.js';

export const command = defineCommand({
  examples: ['orch serve backup /mnt/backup/orch.db', 'orch serve backup "/mnt/backup/orch-$(date +%F).db" -o json'],
  detail: [
    'Runs on the host of the orchestrator, beside it or while it is stopped. A running orchestrator writes the file itself,',
    'with its own rights. The file has its name once it is whole, checked and in the audit log.',
    'It holds the store alone, and neither the keys in the data directory nor what is kept in files there. So it is not',
    'enough to read secrets or to play the orchestrator, and not enough to go on: copy the keys once, to another place.',
  ],
  access: 'local',
  args: { file: argument('FILE', 'the new file', 'file') },
  options: { force: flag('replace FILE'), ...storeOptions },
  run: async ({ programs }, { file, force, ...which }) => {
    const made = await programs.store.backup({ flags: storeFlags(which), file: resolve(file), force });
    const view = stack(
      lines(`Backed up to ${made.file}, with everything up to event ${made.last_seq} of the audit log.`),
      fields(['Size', formatBytes(made.bytes)], ['SHA-256', made.sha256], ['Schema', String(made.schema)]),
      linesOf(about(made.keys)),
    );
    return { body: made, names: [made.file], view };
  },
});

const MEANING: Readonly<Record<string, string>> = {
  'identity.key': 'the agents trust it; without it, each has to be repinned',
  'audit.key': 'signs the audit log; without it, checkpoints kept elsewhere cannot be checked',
  'secrets.key': 'without it, the secrets in the backup cannot be read by anybody',
  'api.key': 'clients have pinned it; without it, each has to pin another one',
};

function about(keys: readonly string[]): readonly Line[] {
  if (keys.length === 0) return [];
  const named = keys.map((path) => `  ${path}: ${MEANING[path.slice(path.lastIndexOf('/') + 1)] ?? 'a key'}`);
  return ['Not in it, for whoever has both can read every secret. Keep these apart from it:', ...named];
}
