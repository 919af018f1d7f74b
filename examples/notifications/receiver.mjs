// Receives notifications of orch on a loopback port and prints each one once: docs/guides/notifications.md
// Run it with WEBHOOK_SECRET=whsec_… PORT=8900 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const seen = new Set();

/** True if the request is from an orchestrator with our secret, and at most five minutes old. */
function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature = '' } = headers;
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) return false;
  const expected = Buffer.from(createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64'));
  return signature.split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''));
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  if (!isGenuine(request.headers, body)) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(204).end();
  const { id, severity, event_type: type, summary } = JSON.parse(body);
  // A delivery may arrive twice. The ID stays the same.
  if (seen.has(id)) return;
  seen.add(id);
  console.log(`${severity} ${type}: ${summary}`);
}).listen(Number(process.env.PORT), '127.0.0.1');
