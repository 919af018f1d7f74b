/** A server of a vendor that booted hosts reach: a signed repository of Debian packages with its key, and any other file. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { type Deb, debRepository, debTools } from './deb-repository.js';
import { keyTools, signingKey } from './signing-key.js';

export const vendorTools = { ...debTools, ...keyTools };

export interface Vendor {
  readonly port: number;
  /** SHA-256 of what is served as `key.asc` and `gpg`, and of the file of any other name. */
  readonly keySum: string;
  readonly fileSum: string;
  /** Returns the SHA-256 of a package, by the name of its file. */
  readonly packageSum: (file: string) => string;
  readonly stop: () => Promise<void>;
}

export async function startVendor(debs: readonly Deb[], file: Buffer): Promise<Vendor> {
  const repository = debRepository();
  const key = await signingKey('vendor');
  await repository.publish(debs);
  await key.sign(repository.directory);
  const server = createServer((request, response) => {
    const name = basename(request.url ?? '');
    const path = join(repository.directory, name);
    if (name === 'gpg' || name === 'key.asc') return response.end(key.armoured);
    if (existsSync(path)) return response.end(readFileSync(path));
    if (/^(InRelease|Release|Packages|Sources|Translation)/.test(name)) return response.writeHead(404).end();
    return response.end(file);
  });
  await new Promise<void>((resolve) => void server.listen(0, '0.0.0.0', resolve));
  const address = server.address();
  const sumOf = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    keySum: sumOf(key.armoured),
    fileSum: sumOf(file),
    packageSum: (name) => sumOf(readFileSync(join(repository.directory, name))),
    stop: async () => {
      server.close();
      repository.remove();
      await key.remove();
    },
  };
}
