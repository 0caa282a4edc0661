# Stands in for python:X.Y-slim-bookworm where there is no registry of images. Like that one it is Debian's smallest system with
# a Python compiled on it; less optimised, because that takes a compiler half an hour. `debian/` is what debootstrap made.
FROM scratch AS debian
COPY debian /
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin

FROM debian AS build
ARG MIRROR
ARG RELEASE
RUN echo "deb-src $MIRROR $RELEASE main" > /etc/apt/sources.list.d/source.list && apt-get update \
 && apt-get install --yes --no-install-recommends dpkg-dev gcc make xz-utils libc6-dev libssl-dev zlib1g-dev libbz2-dev \
    liblzma-dev libsqlite3-dev libffi-dev uuid-dev libreadline-dev libncurses-dev
ARG PYTHON
WORKDIR /src
# Debian's source package has Python's own archive in it, and apt verifies it.
RUN apt-get source --download-only "python$PYTHON" && tar --extract --strip-components=1 --file "$(ls ./*.orig.tar.xz)"
RUN ./configure --quiet --enable-shared --enable-loadable-sqlite-extensions --with-ensurepip --disable-test-modules \
    OPT="-O1 -DNDEBUG" && make --silent --jobs="$(nproc)"
RUN make --silent install DESTDIR=/installed

FROM debian
COPY --from=build /installed/usr/local /usr/local
RUN ldconfig && ln --symbolic python3 /usr/local/bin/python
