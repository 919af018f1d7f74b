/**
 * The client of a session at this terminal. It may have to ask for the passphrase of one's key in the middle of it, when a login is
 * over: what is typed then must not go to the agent.
 */
import type { ApiClient } from '../../client/api-client.js';
import { connectApi } from '../connect/connect-api.js';
import type { Context } from '../context.js';

/** Has the terminal for itself for as long as the question is asked. */
export type GiveWay = <T>(ask: () => Promise<T>) => Promise<T>;

export interface TerminalApi {
  readonly api: ApiClient;
  /** From now on questions are asked through this. */
  askThrough(giveWay: GiveWay): void;
}

/** To be closed by the caller. */
export async function terminalApi(context: Context): Promise<TerminalApi> {
  let through: GiveWay = (ask) => ask();
  const { prompt } = context;
  const api = await connectApi({
    ...context,
    prompt: {
      ...prompt,
      secret: (question, instead) => through(() => prompt.secret(question, instead)),
      confirm: (question, instead) => through(() => prompt.confirm(question, instead)),
    },
  });
  return {
    api,
    askThrough: (giveWay) => {
      through = giveWay;
    },
  };
}
