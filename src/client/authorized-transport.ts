/** Sends requests with a session token, and a second time where that helps: after a new login, after a broken connection. */
import { Fault } from '../kernel/fault.js';
import { readFailure } from './read-answer.js';
import type { Session } from './session.js';
import { type Transport, type TransportAnswer, type TransportRequest, textOf } from './transport.js';
import { isBroken } from './unreachable.js';

export interface AuthorizedTransportOptions {
  readonly transport: Transport;
  readonly session: Session;
  readonly url: URL;
}

export class AuthorizedTransport {
  private readonly options: AuthorizedTransportOptions;

  constructor(options: AuthorizedTransportOptions) {
    this.options = options;
  }

  /** The answer, whatever its status; a token that is refused is replaced once by a login. */
  async send(request: TransportRequest, isPublic: boolean): Promise<TransportAnswer> {
    if (isPublic) return await this.attempt(request);
    const { session } = this.options;
    const token = await session.token();
    const answer = await this.attempt(withToken(request, token));
    if (answer.status !== 401 || !session.renewable) return answer;
    // Read to its end, so that the connection can be used again.
    await textOf(answer);
    return await this.attempt(withToken(request, await session.renew(token)));
  }

  /** The fault of an answer that is no success. */
  async failure(answer: TransportAnswer): Promise<Error> {
    const fault = await readFailure(answer, this.options.url);
    if (answer.status !== 401 || this.options.session.renewable || !(fault instanceof Fault)) return fault;
    return new Fault(fault.code, 'the session token in ORCH_TOKEN is unknown or over', {
      hint: 'set a fresh one, or unset it to log in with your key',
      ...(fault.data ? { data: fault.data } : {}),
    });
  }

  private async attempt(request: TransportRequest): Promise<TransportAnswer> {
    const { transport } = this.options;
    try {
      return await transport.request(request);
    } catch (error) {
      if (!isBroken(error) || !isRepeatable(request)) throw error;
      return await transport.request(request);
    }
  }
}

const withToken = (request: TransportRequest, token: string): TransportRequest => ({
  ...request,
  headers: { ...request.headers, authorization: `Bearer ${token}` },
});

/** Whether doing it twice is the same as once. */
const isRepeatable = ({ method, headers }: TransportRequest): boolean =>
  method === 'GET' || method === 'HEAD' || headers['idempotency-key'] !== undefined;
