/** `orch enroll list`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { tokenTable } from './token-view.js';

export const command = defineCommand({
  examples: ['orch enroll list'],
  detail: ['The tokens themselves are not stored. One that has expired is listed for a week.'],
  access: 'admin',
  run: async (context) => {
    const api = await context.api();
    const tokens = await api.call('listEnrolmentTokens', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: tokens, names: tokens.map(({ id }) => id), view: tokenTable(tokens, nameOf, context.clock.now()) };
  },
});
