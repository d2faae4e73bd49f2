// Asks by OpenAI's package and by the AI SDK, in one piece and streamed.
import OpenAI from "openai";
import { generateText, streamText } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const [baseURL, model] = process.argv.slice(2);
const prompt = "What is the capital of France?";
const body = { model, messages: [{ role: "user", content: prompt }], max_tokens: 20 };
const client = new OpenAI({ baseURL, apiKey: "test" });
const seen = {};

const whole = await client.chat.completions.create(body);
seen.openai = [whole.choices[0].message.content, whole.snne_guard.decision];

let text = "";
let record;
for await (const part of await client.chat.completions.create({ ...body, stream: true })) {
  text += part.choices[0]?.delta.content ?? "";
  record = part.snne_guard;
}
seen.openaiStream = [text, record.decision];

const provider = createOpenAICompatible({ name: "guarded", baseURL, apiKey: "test" });
const settings = { model: provider(model), prompt, maxOutputTokens: 20 };
const answer = await generateText(settings);
seen.ai = [answer.text, answer.response.headers["x-snne-guard-decision"]];
const streamed = streamText(settings);
seen.aiStream = [await streamed.text, await streamed.finishReason];
console.log(JSON.stringify(seen));
