/** `orch enroll revoke`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch enroll revoke 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Nobody can use it any more. Machines that it has let in stay.'],
  access: 'admin',
  args: { id: argument('TOKEN', 'its ID, as "orch enroll list" shows it') },
  run: async (context, { id }) => {
    const api = await context.api();
    await api.call('revokeEnrolmentToken', { params: { id }, signal: context.signal });
    return { names: [id], view: lines(`Revoked ${id}.`) };
  },
});
