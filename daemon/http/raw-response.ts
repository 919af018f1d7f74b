/** Answers that are written piece by piece, past Fastify. */
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

/** Sends status 200 and the headers. */
export function beginStream(reply: FastifyReply, contentType: string): void {
  reply.hijack();
  const response = reply.raw;
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) response.setHeader(name, value);
  }
  // The second one keeps a proxy from collecting what comes in pieces.
  response.writeHead(200, { 'content-type': contentType, 'x-accel-buffering': 'no' });
}

/** Nobody gets what is written now. */
export const isGone = (response: ServerResponse): boolean => response.destroyed || response.writableEnded;

/** Resolves when the client has taken what was written, or is gone; never rejects. */
export function hasRoom(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
    if (isGone(response) || !response.writableNeedDrain) done();
  });
}
