/** `orch audit tail`. */
import { followEvents } from '../../../client/follow-events.js';
import { messageOf } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { auditOptions, auditQuery } from './audit-options.js';
import { auditLine } from './audit-view.js';

export const command = defineCommand({
  examples: ['orch audit tail', 'orch audit tail --category agent', 'orch audit tail --after "10m ago" -o json'],
  detail: [
    'Shows events as they happen, until Ctrl-C. With -o json each is one line. When the connection breaks or the',
    'orchestrator restarts, it connects again and goes on where it was: no event is shown twice, and none is left out.',
  ],
  access: 'viewer',
  options: auditOptions,
  run: async (context, input) => {
    const api = await context.api();
    const query = auditQuery(input, context.clock.now());
    const events = followEvents(
      api,
      'streamEvents',
      { query, signal: context.signal },
      {
        onLost: (error) => context.note(`Connecting again, for the connection was lost: ${messageOf(error)}`),
        onResumed: () => context.note('Connected again.'),
      },
    );
    return (async function* () {
      for await (const event of events) {
        yield { body: event, oneLine: true as const, names: [event.id], view: lines(auditLine(event)) };
      }
    })();
  },
});
