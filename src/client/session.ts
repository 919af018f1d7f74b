/** The session of a client: a token from the environment, from the cache, or from a new login. */

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readPrivateFile } from '../identity/private-file.js';
import type { Clock } from '../kernel/clock.js';
import { messageOf } from '../kernel/fault.js';
import type { Connection, KeySource } from './connection.js';
import { keepsState, stateDirectory, writeOwnFile } from './operator-files.js';
import { urlText } from './server-url.js';

interface SessionOptions {
  /** Token from `ORCH_TOKEN`, or null. With one, the client neither logs in nor uses the cache. */
  readonly fixed: string | null;
  readonly cache: TokenCache;
  readonly clock: Clock;
  logIn(): Promise<Token>;
  warn(message: string): void;
}

/** Minimum remaining lifetime of a token, in seconds. */
const MARGIN_S = 10;

export class Session {
  private readonly options: SessionOptions;
  private cached: Token | null | undefined;
  private login: Promise<Token> | null = null;

  constructor(options: SessionOptions) {
    this.options = options;
  }

  /** Returns a token to send. Logs in without one; concurrent calls share one login. */
  async token(): Promise<string> {
    const { fixed } = this.options;
    return fixed ?? this.current()?.token ?? (await this.logInOnce()).token;
  }

  /** True when the client can get another token. */
  get renewable(): boolean {
    return this.options.fixed === null;
  }

  /** Returns another token than the one that the server has just refused. */
  async renew(refused: string): Promise<string> {
    if (this.cached?.token === refused) this.cached = null;
    return await this.token();
  }

  /** Returns the token of the current session, or null. Never logs in. */
  held(): string | null {
    return this.options.fixed ?? this.current()?.token ?? null;
  }

  forget(): void {
    this.cached = null;
    this.options.cache.forget();
  }

  private current(): Token | null {
    if (this.cached === undefined) this.cached = this.options.cache.read();
    const now = this.options.clock.now() / 1000;
    return this.cached && this.cached.expiresAt > now + MARGIN_S ? this.cached : null;
  }

  private async logInOnce(): Promise<Token> {
    this.login ??= this.options.logIn().finally(() => {
      this.login = null;
    });
    const token = await this.login;
    if (this.cached !== token) this.keep(token);
    return token;
  }

  private keep(token: Token): void {
    this.cached = token;
    try {
      this.options.cache.write(token);
    } catch (error) {
      this.options.warn(`the session could not be kept for the next command: ${messageOf(error)}`);
    }
  }
}

export interface Token {
  readonly token: string;
  /** Unix time in seconds. */
  readonly expiresAt: number;
}

interface TokenCache {
  /** Returns the stored token for exactly this server, trust and key, expired or not; null without a usable one. */
  read(): Token | null;
  /** Stores a token. Throws the system's error. */
  write(token: Token): void;
  forget(): void;
}

/** Keeps nothing on disk. */
const noCache: TokenCache = { read: () => null, write: () => {}, forget: () => {} };

/**
 * Returns the token cache of a connection: one private file for each profile. A key from the environment leaves no token on
 * disk, because its owner keeps it out of files, and neither does `ORCH_NO_STATE`.
 */
export function tokenCache(connection: Connection): TokenCache {
  if (connection.key.kind === 'pem' || !keepsState(connection.env)) return noCache;
  const path = join(stateDirectory(connection.env), 'tokens', `${nameOf(connection)}.json`);
  const owner = ownerOf(connection);
  return {
    read: () => {
      const kept = readJson(path);
      if (kept === null || kept.owner !== owner) return null;
      const { token, expires_at: expiresAt } = kept;
      return typeof token === 'string' && typeof expiresAt === 'number' ? { token, expiresAt } : null;
    },
    write: ({ token, expiresAt }) => {
      writeOwnFile(path, `${JSON.stringify({ url: urlText(connection.url), owner, token, expires_at: expiresAt })}\n`);
    },
    forget: () => rmSync(path, { force: true }),
  };
}

/** Returns the profile's name, or a name derived from the server's address. */
function nameOf({ profile, url }: Connection): string {
  return profile === null ? `url-${digest(urlText(url))}` : `profile-${profile}`;
}

/** Returns a digest of server, trust and key. A token is sent only when all of them are unchanged. */
function ownerOf({ url, pin, ca, key }: Connection): string {
  return digest(JSON.stringify([urlText(url), pin, ca, ...nameOfKey(key)]));
}

function nameOfKey(key: KeySource): readonly (string | null)[] {
  if (key.kind === 'agent') return ['agent', key.wanted];
  return [key.kind === 'file' ? key.path : key.pem];
}

/** Reads the cache file; null for a missing, damaged or non-private file. */
function readJson(path: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(readPrivateFile(path));
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);
