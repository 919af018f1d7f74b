/** `orch enroll create`. */
import { TOKEN_TTL, TOKEN_USES } from '../../../contract/enrolment-tokens.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { parseDuration } from '../../duration.js';
import { flag, integer, list, text } from '../../option.js';
import { parseTag } from '../../parse-tag.js';
import { lines, stack, styled } from '../../view.js';
import { connectLine, isLoopback, placeOfAgents } from './connect-line.js';
import { promiseOf } from './token-view.js';

export const command = defineCommand({
  examples: ['orch enroll create', 'orch enroll create --ttl 1d --uses 20 --tag role=web --auto-approve'],
  detail: [
    'Prints the line to run on the new machine. With its token the machine knows the key of the orchestrator and waits for',
    'approval outside of the queue; with --auto-approve it is approved at once, under its host name. Whoever has the token',
    'can do the same until it has expired or is used up: "orch enroll revoke" ends it before. It is shown only here.',
  ],
  access: 'admin',
  options: {
    ttl: text('TIME', 'how long it can be used, at most 7d; 1h'),
    uses: integer('N', 'how many machines can use it, at most 1000; 1', 1),
    tag: list('KEY[=VALUE]', 'a tag for each of these machines'),
    auto_approve: flag('approve them at once'),
  },
  run: async (context, input) => {
    const ttl = input.ttl === undefined ? TOKEN_TTL.standard : parseDuration(input.ttl, '--ttl');
    const uses = input.uses ?? TOKEN_USES.standard;
    requireAtMost('--ttl', '7d', ttl <= TOKEN_TTL.maximum);
    requireAtMost('--uses', String(TOKEN_USES.maximum), uses <= TOKEN_USES.maximum);
    const tags = Object.fromEntries(input.tag.map(parseTag));
    const { signal } = context;
    const api = await context.api();
    const body = { ttl_secs: ttl, uses, tags, auto_approve: input.auto_approve };
    const created = await api.call('createEnrolmentToken', { body, signal });
    const place = placeOfAgents(created, api.url);
    const command = connectLine(created.token, place);
    if (created.agent_host === null && isLoopback(place)) {
      context.warn(
        `${place} is this machine alone: on another one, write the name of the orchestrator's host instead.`,
      );
    }
    return {
      body: { ...created, command },
      names: [created.id],
      view: stack(
        lines(styled('strong', 'Run this as root on the new machine:')),
        // The space keeps the line out of the history of shells that leave out what begins with one.
        lines(` ${command}`),
        lines(`Token ${created.id} ${promiseOf(created)}. It is not shown again.`),
      ),
    };
  },
});

function requireAtMost(option: string, most: string, holds: boolean): void {
  if (!holds) throw new Fault('usage', `${option} is at most ${most}`);
}
