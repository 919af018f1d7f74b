/** The session of a client: the token from outside, the one kept from before, or that of a login that it makes itself. */
import type { Clock } from '../kernel/clock.js';
import { messageOf } from '../kernel/fault.js';
import type { Token, TokenCache } from './token-cache.js';

export interface SessionOptions {
  /** A token from outside, or null. With one there is no login and no cache. */
  readonly fixed: string | null;
  readonly cache: TokenCache;
  readonly clock: Clock;
  logIn(): Promise<Token>;
  warn(message: string): void;
}

/** A token that ends so soon is not worth sending. */
const MARGIN_S = 10;

export class Session {
  private readonly options: SessionOptions;
  private known: Token | null | undefined;
  private login: Promise<Token> | null = null;

  constructor(options: SessionOptions) {
    this.options = options;
  }

  /** A token to send. Logs in when there is none; calls at the same time share one login. */
  async token(): Promise<string> {
    const { fixed } = this.options;
    return fixed ?? this.current()?.token ?? (await this.logInOnce()).token;
  }

  /** Whether another token can be had. */
  get renewable(): boolean {
    return this.options.fixed === null;
  }

  /** Another token than the one that the server has just refused. */
  async renew(refused: string): Promise<string> {
    if (this.known?.token === refused) this.known = null;
    return await this.token();
  }

  /** The token to end, or null when there is no session. */
  held(): string | null {
    return this.options.fixed ?? this.current()?.token ?? null;
  }

  forget(): void {
    this.known = null;
    this.options.cache.forget();
  }

  private current(): Token | null {
    if (this.known === undefined) this.known = this.options.cache.read();
    const now = this.options.clock.now() / 1000;
    return this.known && this.known.expiresAt > now + MARGIN_S ? this.known : null;
  }

  private async logInOnce(): Promise<Token> {
    this.login ??= this.options.logIn().finally(() => {
      this.login = null;
    });
    const token = await this.login;
    if (this.known !== token) this.keep(token);
    return token;
  }

  private keep(token: Token): void {
    this.known = token;
    try {
      this.options.cache.write(token);
    } catch (error) {
      this.options.warn(`the session could not be kept for the next command: ${messageOf(error)}`);
    }
  }
}
