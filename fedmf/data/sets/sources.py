"""Sources of the data sets: archives, terms of use, and checksums of files.

GroupLens publishes the MD5 of an archive. The MD5 detects damage; authenticity rests on https.
The SHA-256 of a file is from the copy that gave this library's published figures. A file listed
with "" has no checksum, as editions differ in line ends or time stamps. The content of such a
file is validated instead, by the published numbers of users, items and ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_MOVIELENS = (
    "Free for research: acknowledge the data set in publications, do not imply GroupLens' "
    "endorsement, "
)
_NO_COMMERCE = "and do not use it commercially without the permission of GroupLens."
_RESEARCH = "For research only: do not redistribute it, and cite "
_NO_COPIES = _MOVIELENS + "do not redistribute it, " + _NO_COMMERCE


@dataclass(frozen=True)
class Source:
    """Archive on the web with at least one data set.

    Parameters
    ----------
    name : name for ``fedmf data fetch``
    page : address of a description with the full terms
    terms : summary of the terms of use
    files : names of the files that are read, each with the SHA-256 in hexadecimal, or ""
    folder : name of the folder with the files; by default `name`
    sets : names of the data sets for `fedmf.data.load`; by default `name` alone
    archive, md5
        Address of the zip file, and the MD5 of the file or None. The address is empty without a
        stable public download.
    """

    name: str
    page: str
    terms: str
    files: Mapping[str, str]
    folder: str = ""
    sets: tuple[str, ...] = ()
    archive: str = ""
    md5: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", self.folder or self.name)
        object.__setattr__(self, "sets", self.sets or (self.name,))


_ALL = (
    Source(
        name="ml-100k",
        archive="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        md5="0e33842e24a9c977be4e0107933c0723",
        page="https://files.grouplens.org/datasets/movielens/ml-100k-README.txt",
        terms=_NO_COPIES,
        files={
            "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
            "u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
            "u.info": "5b0a40b2e47a729ee6203063f6dcf8790c2e63f5a18663e6ee318a72c5f3c27b",
            "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
            "u.occupation": "cd5fbec9afe345d993a62fc7817df1a4a9079c4feb267b3118763b8fd942137d",
            "u1.base": "ce253ec86c448b44fb3ba9a30d12dcfc2e9210cbde71efada3730c22e9ac212a",
            "u1.test": "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
            "u2.base": "6c06f0b5df4b256da1a994f3ac66edc8da4d3f09bc9282df6b14d893366d703e",
            "u2.test": "4de658d1e04ed9104629509a2e2528fce833ac8e048280183f1df167632038c3",
            "u3.base": "afdc155c291c6edc41c0407e39d7462eb98d341e064f0b0a12175b80b3c4af5d",
            "u3.test": "0f548b51c78327de4c156461d3e430b7e5579fe2b5681586a59416e48fd35f6d",
            "u4.base": "219f0f4d40dfe9c5141d425f53fa91ee23ed275f14e280bbf1b50117afb064ca",
            "u4.test": "7c02ad0a1e7ab1083c8b9d4b627203a051dd7b5eab46d99fa44de33470de8db9",
            "u5.base": "a9574e59ce961eec2121627760b6e9b0974ce1637b3fe69ac32cb14a4bfab485",
            "u5.test": "351cc52e0d15b6c721466276fc24671d40936899e3d01fadeaf312915b8c5634",
        },
    ),
    Source(
        name="ml-1m",
        archive="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        md5="c4d9eecfca2ab87c1945afe126590906",
        page="https://files.grouplens.org/datasets/movielens/ml-1m-README.txt",
        terms=_NO_COPIES,
        files={
            "ratings.dat": "",
            "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
            "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
        },
    ),
    Source(
        name="ml-10m",
        folder="ml-10M100K",
        archive="https://files.grouplens.org/datasets/movielens/ml-10m.zip",
        md5="ce571fd55effeba0271552578f2648bd",
        page="https://files.grouplens.org/datasets/movielens/ml-10m-README.html",
        terms=_NO_COPIES,
        files={"ratings.dat": "", "movies.dat": "", "tags.dat": ""},
    ),
    Source(
        name="ml-latest-small",
        archive="https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
        # no MD5: "latest" may be replaced; the files' checksums detect that
        page="https://files.grouplens.org/datasets/movielens/ml-latest-small-README.html",
        terms=_MOVIELENS + "redistribute it under the same terms only, " + _NO_COMMERCE,
        files={
            "ratings.csv": "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
            "movies.csv": "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
            "tags.csv": "92a9f8bb7916dceef6151209845788c3643f794dfa79d1feaec7121b5960399d",
        },
    ),
    Source(
        name="lastfm",
        folder="hetrec2011-lastfm-2k",
        sets=("lastfm", "lastfm-user", "lastfm-log"),
        archive="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
        page="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k-readme.txt",
        terms=(
            "Free for non-commercial use: cite Last.fm and the HetRec 2011 workshop; ask "
            "Last.fm before any commercial use."
        ),
        files={
            "user_artists.dat": "",
            "artists.dat": "",
            "tags.dat": "",
            "user_taggedartists.dat": "",
        },
    ),
    Source(
        name="filmtrust",
        page="https://guoguibing.github.io/librec/datasets.html",
        terms=_RESEARCH + "Guo, Zhang and Yorke-Smith, IJCAI 2013.",
        files={"ratings.txt": ""},
    ),
    Source(
        name="douban",
        page="https://github.com/fmonti/mgcnn",
        terms=_RESEARCH + "Ma et al., WSDM 2011, and Monti et al., NIPS 2017.",
        files={"ratings.txt": ""},
    ),
)

SOURCES: Mapping[str, Source] = MappingProxyType({one.name: one for one in _ALL})
