/** `orch serve restore`. */
import { resolve } from 'node:path';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { flag } from '../../option.js';
import type { Restored, RestorePlan } from '../../store-programs.js';
import { type Line, linesOf, styled } from '../../view.js';
import { storeFlags, storeOptions } from './store-options.js';

export const command = defineCommand({
  examples: ['orch serve restore /mnt/backup/orch.db', 'orch serve restore orch.db --data-dir /var/lib/orch --yes'],
  detail: [
    'While the orchestrator is stopped, on its host and as its user. FILE is checked first: whether it is whole, not of a',
    'newer orch, and fits the keys in the data directory; on a new host, put those there before. The store that is there',
    'is kept beside it. A new epoch begins, so that agents take applies of a store that is older than they are.',
    'Logins end and open enrolment tokens are revoked. Applies that were under way are not sent again. Notifications',
    'that were waiting are sent, some perhaps for the second time. Recordings of terminals that are in the data directory',
    'and newer than FILE are listed again.',
  ],
  access: 'local',
  consent: true,
  args: { file: argument('FILE', 'a backup', 'file') },
  options: {
    new_identity: flag('go on without the identity.key of the backup: every agent has to be repinned'),
    ...storeOptions,
  },
  run: async ({ programs, prompt, present }, { file, new_identity: newIdentity, ...which }) => {
    const confirm = async (plan: RestorePlan) => {
      await present(linesOf(planLines(plan)));
      await prompt.consent(`Put ${plan.file} in the place of the store in ${plan.data_dir}?`);
    };
    const request = { flags: storeFlags(which), file: resolve(file), newIdentity, confirm };
    const restored = await programs.store.restore(request);
    return { body: restored, names: [restored.data_dir], view: linesOf(doneLines(restored)) };
  },
});

function planLines({ made_at, last_seq, last_at, ...plan }: RestorePlan): readonly Line[] {
  const made = made_at === null ? 'a store that was copied by hand' : `a backup of ${made_at}`;
  return [
    `${plan.file}: ${made}, up to event ${last_seq} of the audit log${last_at === null ? '' : ` of ${last_at}`}.`,
    ...lossLines(plan, last_seq),
    ...backLines(plan),
  ];
}

function lossLines(plan: Omit<RestorePlan, 'made_at' | 'last_seq' | 'last_at'>, seq: number): readonly Line[] {
  if (plan.present === 'none') return [`There is no store in ${plan.data_dir} yet.`];
  if (plan.present === 'unreadable') return [`The store in ${plan.data_dir} is damaged.`];
  const newer = (plan.present_seq ?? 0) - seq;
  const at = plan.present_at === null ? '' : ` of ${plan.present_at}`;
  const end = `The store in ${plan.data_dir} goes up to event ${plan.present_seq}${at}`;
  return [
    newer > 0 ? [`${end}: `, styled('warn', `${count(newer, 'event')} and what they did will be gone.`)] : `${end}.`,
  ];
}

/** Who was removed since the backup was made is there again. */
function backLines({
  operators_back,
  agents_back,
}: Pick<RestorePlan, 'operators_back' | 'agents_back'>): readonly Line[] {
  const back: Line[] = [];
  if (operators_back.length > 0) back.push(styled('warn', `May log in again: ${someOf(operators_back)}.`));
  if (agents_back.length > 0) back.push(styled('warn', `Approved again: ${someOf(agents_back)}.`));
  return back;
}

/** The whole list is in the JSON. */
const SHOWN = 10;

const someOf = (names: readonly string[]): string =>
  names.length <= SHOWN ? names.join(', ') : `${names.slice(0, SHOWN).join(', ')} and ${names.length - SHOWN} more`;

function doneLines(restored: Restored): readonly Line[] {
  const { epoch, sessions, tokens, operations, deliveries, recordings, kept, secrets_key } = restored;
  return [
    `Put back, as epoch ${epoch}. Start orch serve; then: orch audit verify`,
    ...(kept === null ? [] : [`The store that was there is kept as ${kept}. Delete it when nothing of it is missed.`]),
    ...(secrets_key === null
      ? []
      : [`The secrets are opened with ${secrets_key}; the next start encrypts them with the key of now.`]),
    ...(sessions === 0 ? [] : [`${count(sessions, 'login')} ended.`]),
    ...(tokens === 0 ? [] : [`${count(tokens, 'enrolment token')} revoked.`]),
    ...(operations === 0
      ? []
      : [`${count(operations, 'apply', 'applies')} under way: the agents are asked how it ended.`]),
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
  ];
}
