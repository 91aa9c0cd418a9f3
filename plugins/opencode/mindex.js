// mindex for opencode: recall before a prompt, store after an answer. Copy it to ~/.config/opencode/plugins/.
// Everything is done by `mindex hook`; this only passes on what opencode knows.

import { spawn } from "node:child_process"

function hook(event, message) {
  return new Promise((resolve) => {
    const child = spawn("mindex", ["hook", event, "--client", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), 20_000)
    let said = ""
    child.stdout.on("data", (data) => (said += data))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve("")) // mindex is not installed
    child.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(said).hookSpecificOutput.additionalContext)
      } catch {
        resolve("") // there was nothing to say
      }
    })
    child.stdin.end(JSON.stringify(message))
  })
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n")

export const Mindex = async ({ client, directory }) => {
  const context = new Map() // what a session is told with its prompts, by session
  const prompts = new Map() // what was asked last, by session

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = textOf(parts)
      const message = { session_id: sessionID, cwd: directory, prompt }
      if (!context.has(sessionID)) {
        context.set(sessionID, [await hook("session-start", { ...message, source: "startup" })])
      }
      context.get(sessionID).push(await hook("prompt", message))
      prompts.set(sessionID, prompt)
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      system.push(...(context.get(sessionID) ?? []).filter(Boolean))
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID
      if (event.type !== "session.idle" || !prompts.has(id)) return
      const { data } = await client.session.messages({ path: { id } })
      const last = data?.findLast((one) => one.info.role === "assistant")
      if (!last) return
      const prompt = prompts.get(id)
      prompts.delete(id)
      await hook("stop", { session_id: id, cwd: directory, prompt, last_assistant_message: textOf(last.parts) })
    },
  }
}
