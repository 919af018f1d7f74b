/** `orch serve rotate-secrets-key`. */
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { text } from '../../option.js';
import type { RotatedSecretsKey } from '../../programs.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch serve rotate-secrets-key', 'orch serve rotate-secrets-key --data-dir ./orch'],
  detail: [
    'Runs beside the orchestrator, on its host and as its user. Every value is encrypted anew, then the old key is kept',
    'as secrets.key.1 (or .2 …) in the data directory: restores of older backups need it, so delete it only with them.',
    'The next start ends a rotation that is cut off. A copy of the old key and of an older store or backup still gives',
    'the values of then: set those anew.',
  ],
  access: 'local',
  options: {
    config: text('FILE', 'configuration file; /etc/orch/orchestrator.yaml when it is there', { completes: 'file' }),
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
        `The key of the secrets was changed; ${anew(rotated)} encrypted anew.`,
        ...(rotated.kept === null
          ? []
          : [`The old key is kept as ${rotated.kept}: restores of older backups need it.`]),
      ),
    };
  },
});

function anew({ secrets, outputs, channels }: RotatedSecretsKey): string {
  const others = [
    ...(outputs === 0 ? [] : [`${count(outputs, 'output')} of scripts`]),
    ...(channels === 0 ? [] : [count(channels, 'channel')]),
  ];
  const last = others.at(-1);
  const all = [count(secrets, 'secret'), ...others.slice(0, -1)].join(', ');
  return last === undefined ? all : `${all} and ${last}`;
}
