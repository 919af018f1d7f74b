/** Texts that leave the orchestrator and come back to another release: discovery packets and enrolment tokens. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { encodePacket, packetDecoder, type SignedAnnouncement, signedBytes } from '../../src/wire/discovery-packet.js';
import { formatEnrolmentToken, parseEnrolmentToken } from '../../src/wire/enrolment-token.js';
import { type Complete, describeReleased } from '../support/released.js';

const key = 'ab'.repeat(32) as PublicKeyHex;
const packet: Complete<SignedAnnouncement> = {
  publicKey: key,
  host: 'orch.example',
  port: 4747,
  timestamp: 1_772_366_400_000,
  signature: 'cd'.repeat(64),
};

describeReleased(import.meta.url, [
  {
    name: 'discovery-packet',
    revision: 1,
    version: 'version and DOMAIN in src/wire/discovery-packet.ts',
    write: (directory) => writeFileSync(join(directory, 'packet'), encodePacket(packet)),
    read: (directory) => {
      const decoded = packetDecoder()(readFileSync(join(directory, 'packet')));
      return { decoded, signed: decoded && signedBytes(decoded).toString() };
    },
  },
  {
    name: 'enrolment-token',
    revision: 1,
    version: 'PREFIX in src/wire/enrolment-token.ts',
    write: (directory) => {
      const token = { id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', secret: Buffer.alloc(32, 7), orchestratorKey: key };
      writeFileSync(join(directory, 'token'), formatEnrolmentToken(token));
    },
    read: (directory) => {
      const token = parseEnrolmentToken(readFileSync(join(directory, 'token'), 'utf8'));
      return { ...token, secret: token?.secret.toString('hex') };
    },
  },
]);
