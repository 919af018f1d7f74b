/** Session tokens between commands: one private file for each profile. */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readPrivateFile } from '../identity/private-file.js';
import type { Connection } from './connection.js';
import { stateDirectory } from './directories.js';
import { writeOwnFile } from './own-file.js';
import { urlText } from './server-url.js';

export interface Token {
  readonly token: string;
  /** Unix time in seconds. */
  readonly expiresAt: number;
}

export interface TokenCache {
  /** The token kept for this very server, trust and key, expired or not; null when there is none to be used. */
  read(): Token | null;
  /** Throws the system's error when it cannot be written. */
  write(token: Token): void;
  forget(): void;
}

export function tokenCache(connection: Connection): TokenCache {
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

/** Without a profile, the server stands for one. */
function nameOf({ profile, url }: Connection): string {
  return profile === null ? `url-${digest(urlText(url))}` : `profile-${profile}`;
}

/** A token goes to the server that gave it and to no other, and stands for the key that it was given for. */
function ownerOf({ url, pin, ca, key }: Connection): string {
  return digest(JSON.stringify([urlText(url), pin, ca, key.kind === 'file' ? key.path : key.pem]));
}

/** A file that others could have read or written is as good as none. */
function readJson(path: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(readPrivateFile(path));
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);
