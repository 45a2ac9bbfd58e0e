#!/bin/sh
# sglang_environment.sh FOLDER: an environment with SGLang for the CPU and this package, for `make test-sglang`.
# SGLang's CUDA kernels are replaced by a stand-in that raises (sglang_on_cpu.py): to test against the engine itself.
set -eu
python=${PYTHON:-python3}
"$python" -m venv "$1"
pip="$1/bin/python -m pip --disable-pip-version-check --quiet"
$pip install torch==2.13.0 transformers==5.19.0 xgrammar==0.2.7 'llguidance<2,>=1.7.6' outlines==0.1.11 interegular msgspec pyzmq psutil \
  orjson fastapi uvicorn uvloop pybase64 setproctitle requests aiohttp pillow einops pydantic partial_json_parser prometheus-client \
  python-multipart openai==2.8.0 openai-harmony==0.0.4 sentencepiece tiktoken xxhash zstandard IPython compressed-tensors scipy \
  datasets numba==0.65.1 gguf distro blobfile mistral_common anthropic soundfile easydict lark pytest hypothesis scikit-build-core nanobind \
  cmake ninja
# torchvision is imported and not used; its wheel's kernels are CUDA's.
$pip install --no-deps sglang==0.5.23 torchvision==0.28.0
$pip install --no-build-isolation --no-deps .
$pip install typer rich safetensors
site=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$(dirname "$0")/sglang_on_cpu.py" "$site/"
echo 'import sglang_on_cpu' > "$site/sglang_on_cpu.pth"
touch "$1/.installed"
