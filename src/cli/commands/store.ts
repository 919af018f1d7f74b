/** `orch store copy`: moves the store of an orchestrator between a file and PostgreSQL. */
import { resolve } from 'node:path';
import type { CopiedStore, StorePlace } from '../../programs/store.js';
import { argument, defineCommand } from '../define-command.js';
import { count } from '../format.js';
import { heldLines } from '../held-lines.js';
import { text } from '../options.js';
import { lines, linesOf, proseOf, stack } from '../outcome.js';

/** `orch store copy`. */
export const copyStore = defineCommand({
  examples: [
    'orch store copy /var/lib/orch postgres://orch@db.example/orch --to-password-file /etc/orch/store.password',
    'orch store copy postgres://orch@db.example/orch /var/lib/orch',
    "orch store copy postgres://orch@old.example/orch 'postgres://orch@new-1.example,new-2.example/orch'",
  ],
  detail: [
    'FROM and TO are each a data directory, the path of a store file such as orch.db, or',
    'postgres://USER@HOST:PORT/DATABASE. Run it as the user of the orchestrator, while it is stopped. TO must hold no',
    'store. The command compares the number of rows of each table and the whole audit log, and only then puts the',
    'copy in place, in one step. FROM stays as it is: do not start an orchestrator on it again. In the copy a new',
    'epoch begins, as after a restore: logins end, and open enrolment tokens are revoked. Keys and recordings stay in',
    'the data directory. A password comes from the file of the option, or from PGPASSWORD, PGPASSFILE or ~/.pgpass.',
  ],
  access: 'local',
  args: {
    from: argument('FROM', 'the store to copy', 'file'),
    to: argument('TO', 'the place of the copy', 'file'),
  },
  options: {
    from_password_file: text('FILE', 'file with the password of the database FROM', { completes: 'file' }),
    to_password_file: text('FILE', 'file with the password of the database TO', { completes: 'file' }),
  },
  run: async ({ programs, note }, { from, to, from_password_file, to_password_file }) => {
    const copied = await programs.store.copy({
      from: placeOf(from, from_password_file),
      to: placeOf(to, to_password_file),
      onProgress: note,
    });
    return { body: copied, names: [copied.to], view: stack(...viewOf(copied)) };
  },
});

const placeOf = (given: string, passwordFile: string | undefined): StorePlace => ({
  text: /^postgres(ql)?:/i.test(given) ? given : resolve(given),
  passwordFile: passwordFile === undefined ? '' : resolve(passwordFile),
});

function viewOf({ from, to, rows, last_seq, epoch, sessions, tokens, next, rollouts, assignments }: CopiedStore) {
  const tables = Object.values(rows).filter((number) => number > 0);
  const total = tables.reduce((sum, number) => sum + number, 0);
  return [
    lines(
      `Copied ${from} to ${to}: ${count(total, 'row')} of ${count(tables.length, 'table')}, up to event ${last_seq} of the audit log.`,
      `Epoch ${epoch} begins with the copy.`,
    ),
    proseOf([
      ...(sessions === 0 ? [] : [`${count(sessions, 'login')} ended.`]),
      ...(tokens === 0 ? [] : [`${count(tokens, 'enrolment token')} revoked.`]),
    ]),
    proseOf(heldLines({ rollouts, assignments })),
    linesOf(['Next:', ...next.map((step) => `  ${step}`)]),
  ];
}
