/** Recorded by `test/api/examples.test.ts`: examples of the operations about terminal. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listTerminals: {
    query: {
      kind: 'shell',
      limit: '2',
    },
    status: 200,
    answer: [
      {
        session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
        node_id: '3d480af8ff014fe595dbb4008650d659',
        status: 'active',
        opened_at: 1795845188,
        closed_at: null,
        node_name: 'web-01',
        kind: 'shell',
        operator_id: 'f73949d1c67ece1c80aac5a580b586d4',
        operator: 'root',
        user: 'root',
        shell: '/bin/sh',
        command: null,
        reason: null,
        exit_code: null,
        exit_signal: null,
        recording: 'on',
        output_bytes: 0,
        writer: null,
        viewers: [],
      },
    ],
  },
  getTerminal: {
    params: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
    },
    status: 200,
    answer: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
      node_id: '3d480af8ff014fe595dbb4008650d659',
      status: 'active',
      opened_at: 1795845188,
      closed_at: null,
      node_name: 'web-01',
      kind: 'shell',
      operator_id: 'f73949d1c67ece1c80aac5a580b586d4',
      operator: 'root',
      user: 'root',
      shell: '/bin/sh',
      command: null,
      reason: null,
      exit_code: null,
      exit_signal: null,
      recording: 'on',
      output_bytes: 0,
      writer: null,
      viewers: [],
      transcript_path: 'transcripts/2026-11/01M8GBDTR7WN6CEBNXSS53ZWPK.cast',
      transcript_sha256: null,
      cols: 80,
      rows: 24,
    },
  },
  closeTerminal: {
    params: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
    },
    status: 204,
  },
  attachTerminal: {
    params: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
    },
    body: {
      mode: 'write',
    },
    status: 200,
    answer: {
      ws_url: 'wss://orch.example.org:4747/api/v1/terminal/session/01M8GBDTR7WN6CEBNXSS53ZWPK/stream?ticket=TICKET',
    },
  },
  getTranscript: {
    params: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
    },
    status: 200,
    answer:
      '{"version":2,"width":80,"height":24,"timestamp":1795845188,"env":{"TERM":"","SHELL":"/bin/sh"},"orch":{"session":"01M8GBDTR7WN6CEBNXSS53ZWPK","node":"3d480af8ff014fe595dbb4008650d659","node_name":"web-01","operator":"root","shell":"/bin/sh","command":null}}\n[0,"h",{"offset":0,"sha256":"eb874787b59606ce7b8457e7975caaced04a070b456a2d2d4b8f26e21d3a3305"}]\n[0.35,"o","# "]\n[0.351,"h",{"offset":2,"sha25',
  },
  searchTerminals: {
    query: {
      pattern: 'error',
      ignore_case: 'true',
    },
    status: 200,
    answer: {
      matches: [],
      searched: 2,
      truncated: false,
      altered: [],
    },
  },
  openTerminal: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    query: {
      cols: '80',
      rows: '24',
    },
    status: 200,
    answer: {
      session_id: '01M8GBDTR7WN6CEBNXSS53ZWPK',
      ws_url: 'wss://orch.example.org:4747/api/v1/terminal/session/01M8GBDTR7WN6CEBNXSS53ZWPK/stream?ticket=TICKET',
    },
  },
  execOnAgent: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    body: {
      command: ['uptime'],
      timeout_secs: 60,
    },
    status: 200,
    answer: {
      session_id: '01M8GBDT40S997DWJ91XZ6DRR2',
      ws_url: 'wss://orch.example.org:4747/api/v1/terminal/session/01M8GBDT40S997DWJ91XZ6DRR2/stream?ticket=TICKET',
    },
  },
};
