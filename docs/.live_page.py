"""Draws the picture of the live page: real calls through the server, a real browser."""
# ruff: noqa: INP001 - `make pictures` runs it by its path

from __future__ import annotations

import shutil
import socket
import subprocess
import sys

from openai import OpenAI

from snne_guard.langchain.embedded import embedded_server_url

QUESTIONS = (
    "What is the capital of Egypt?",
    "What is the chemical symbol for gold?",
    "Who won the 1907 village chess cup of Ebnat?",
    "What is the capital of England?",
    "What is the capital of China?",
    "Who wrote the novel The Lighthouse of Varn?",
    "What is the phone number of the town hall of Ebnat?",
    "What is the capital of Russia?",
)


def main(picture: str) -> None:
    """Ask the questions, and save what the page shows then."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        sys.exit(
            f"{picture} was not drawn: it needs Chromium, of which none of "
            f"{', '.join(names)} is on the PATH. On Debian: apt-get install chromium"
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = [sys.executable, "-m", "snne_guard", "serve", "--port", str(port)]
    serve += ["--upstream", embedded_server_url(), "--log-level", "warning"]
    serve += ["--threshold", "0.5", "--on-uncertain", "refuse", "--show-texts"]
    server = f"http://127.0.0.1:{port}"
    with subprocess.Popen(serve) as run:  # noqa: S603 - the project's own command
        try:
            # Retries wait for the server to start.
            client = OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=8)
            for question in QUESTIONS:
                client.chat.completions.create(
                    model="SmolLM2-135M-Instruct",
                    messages=[
                        {"role": "system", "content": "Answer in one short sentence."},
                        {"role": "user", "content": question},
                    ],
                    max_tokens=64,
                    temperature=0,
                )
            shot = ["--headless=new", "--no-sandbox", "--disable-gpu", "--timeout=3000"]
            shot += ["--hide-scrollbars", "--force-device-scale-factor=1.5"]
            shot += ["--window-size=860,632", f"--screenshot={picture}"]
            subprocess.run(  # noqa: S603 - the browser that is installed here
                [browser, *shot, f"{server}/snne/live"], check=True, capture_output=True
            )
        finally:
            run.terminate()


main(sys.argv[1])
