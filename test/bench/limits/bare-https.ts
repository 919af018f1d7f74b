/** The limits of the API: servers over TLS that answer each path with a fixed value, as JSON. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { selfSignedP256 } from '../../../src/identity/certificate.js';
import { generateKey, privateKeyPem } from '../../../src/identity/private-key.js';
import { answerQuestions } from '../programs.js';

/** Answers with the port, and with null where the library is not installed. */
export interface BareHttpsQuestion {
  readonly server: 'node:https' | 'fastify';
  /** Answers by path. */
  readonly answers: Readonly<Record<string, unknown>>;
}

function certificate(): { readonly key: string; readonly cert: string } {
  const privateKey = generateKey('p256');
  const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  return { key: privateKeyPem(privateKey), cert };
}

/** Writes the value as JSON for each request, as every API has to. */
function serveBare(answers: BareHttpsQuestion['answers']): Promise<number> {
  const server = createServer(certificate(), ({ url = '' }, response) => {
    const body = JSON.stringify(answers[url]);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Fastify with serialisers compiled from a schema of each answer. */
async function serveFastify(answers: BareHttpsQuestion['answers']): Promise<number | null> {
  const library = await import('fastify').catch(() => null);
  if (library === null) return null;
  const server = library.fastify({ https: certificate() });
  for (const [path, answer] of Object.entries(answers)) {
    server.get(new URL(path, 'https://localhost').pathname, { schema: { response: { 200: schemaOf(answer) } } }, () =>
      Promise.resolve(answer),
    );
  }
  await server.listen({ port: 0, host: '127.0.0.1' });
  return (server.server.address() as AddressInfo).port;
}

/** Returns the JSON Schema of values like this one. */
function schemaOf(value: unknown): object {
  if (value === null) return { type: 'null' };
  if (Array.isArray(value)) return { type: 'array', items: value.length === 0 ? {} : schemaOf(value[0]) };
  if (typeof value !== 'object') return { type: typeof value };
  const properties = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, schemaOf(member)]));
  return { type: 'object', properties };
}

answerQuestions(({ server, answers }: BareHttpsQuestion) =>
  server === 'fastify' ? serveFastify(answers) : serveBare(answers),
);
